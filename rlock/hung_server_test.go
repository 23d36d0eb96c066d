//go:build redis

package rlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// onTime is how late a call may return after a time limit of this library.
const onTime = 20 * time.Millisecond

func TestHungServerDelaysTryLockNoLongerThanItsWait(t *testing.T) {
	onEveryKind(t, func(t *testing.T, k kind) {
		const wait = 200 * time.Millisecond
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{})
		k.warm(t, c, "order")
		s.Pause(t)
		bestOf(t, onTime, func() time.Duration {
			start := time.Now()
			_, err := k.lock(c, "order").TryLock(t.Context(), wait, longLease)
			took := time.Since(start)
			requireNoReply(t, err)
			require.GreaterOrEqual(t, took, wait)
			return took - wait
		})
		s.Resume(t)
		waitForNothingLeft(t, s)
	})
}

func TestHungServerDelaysAnAttemptWithoutWaitForTheCommandTimeout(t *testing.T) {
	onEveryKind(t, func(t *testing.T, k kind) {
		const limit = 200 * time.Millisecond
		s := redistest.Start(t)
		redis := s.Client(t)
		k.warm(t, newClientOn(t, redis, rlock.Options{}), "order") // takes longer on a busy machine
		c := newClientOn(t, redis, rlock.Options{CommandTimeout: limit})
		s.Pause(t)
		bestOf(t, onTime, func() time.Duration {
			start := time.Now()
			_, err := k.lock(c, "order").TryLock(t.Context(), rlock.NoWait, longLease)
			took := time.Since(start)
			requireNoReply(t, err)
			require.GreaterOrEqual(t, took, limit)
			return took - limit
		})
		s.Resume(t)
		waitForNothingLeft(t, s)
	})
}

// A caller whose context cannot end sends the command itself, with a context that does.
func TestErrorOfAHungServerSaysNothingOfAContextThatDidNotEnd(t *testing.T) {
	onEveryKind(t, func(t *testing.T, k kind) {
		const limit = 200 * time.Millisecond
		s := redistest.Start(t)
		redis := s.Client(t)
		k.warm(t, newClientOn(t, redis, rlock.Options{}), "order") // takes longer on a busy machine
		c := newClientOn(t, redis, rlock.Options{CommandTimeout: limit})
		s.Pause(t)
		start := time.Now()
		_, err := k.lock(c, "order").TryLock(context.Background(), rlock.NoWait, longLease)
		require.Less(t, time.Since(start), limit+promptly)
		requireNoReply(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		s.Resume(t)
		waitForNothingLeft(t, s)
	})
}

// Nor of another caller's context, whose end is that of their shared connection. A command ends a
// connection only if it is sent soon after a reply, for which a busy machine may be too slow.
func TestErrorOfAHungServerSaysNothingOfTheContextOfAnother(t *testing.T) {
	for try := 0; !leaveWithAnother(t); try++ {
		require.Less(t, try, 5, "the connection never ended with the context of another")
	}
}

// leaveWithAnother has two callers wait on one connection for a server that hangs. It reports
// whether the one with the long timeout saw the end of the other's context.
func leaveWithAnother(t *testing.T) bool {
	t.Helper()
	s := redistest.Start(t)
	redis := s.Client(t, redistest.OneConnection)
	// One by one: together, or with a command that says who the client is, they would leave the mode
	// with one command at a time.
	shortTimeout := newClientOn(t, redis,
		rlock.Options{CommandTimeout: time.Second, Anonymous: true})
	longTimeout := newClientOn(t, redis,
		rlock.Options{CommandTimeout: longWait / 2, Anonymous: true})
	for range 2 {
		unlock(t, takeWith(context.Background(), t, shortTimeout.NewLock("order"), longLease))
	}
	s.Pause(t)
	first := inBackground(func() (*rlock.Hold, error) {
		return shortTimeout.NewLock("order").TryLock(context.Background(), rlock.NoWait, longLease)
	})
	waitForGoroutines(t, "rlock.(*attempt).try", 1)
	start := time.Now()
	_, err := longTimeout.NewLock("another").TryLock(t.Context(), rlock.NoWait, longLease)
	heard := time.Since(start) < longWait/2
	requireNoReply(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	requireNoReply(t, result(t, first).Err)
	s.Resume(t)
	waitForNothingLeft(t, s)
	return heard
}

func TestHungServerDelaysUnlockForTheCommandTimeoutAndIsUnlockedLater(t *testing.T) {
	onEveryKind(t, func(t *testing.T, k kind) {
		const limit = 200 * time.Millisecond
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{CommandTimeout: limit})
		bestOf(t, onTime, func() time.Duration {
			var hold *rlock.Hold
			eventually(t, func() bool { // the limit may be too short for a busy machine
				var err error
				hold, err = k.lock(c, "order").TryLock(t.Context(), rlock.NoWait, longLease)
				return err == nil
			}, "acquired")
			s.Pause(t)
			start := time.Now()
			err := hold.Unlock(t.Context())
			took := time.Since(start)
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
			require.GreaterOrEqual(t, took, limit)
			s.Resume(t)
			waitUntilFree(t, s, "order")
			return took - limit
		})
	})
}

func TestUnlockOnAnUnreachableServerIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: 500 * time.Millisecond})
		hold := take(t, k.lock(c, "order"), longLease)
		p.Refuse()
		p.Reset()
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		require.True(t, exists(s, "order"))
		require.NoError(t, p.Accept())
		waitUntilFree(t, s, "order")
	})
}

// connections returns the ids of the connections of the client with that name.
func connections(t *testing.T, s *redistest.Server, name string) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(s.DoString(t, "CLIENT", "LIST")) {
		if fields := strings.Fields(line); slices.Contains(fields, "name="+name) {
			ids = append(ids, fields[0])
		}
	}
	return ids
}

func TestDeadlineOfACallersContextDoesNotCloseTheConnectionOfAll(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]func(*rueidis.ClientOption){
		"as usual":          func(*rueidis.ClientOption) {},
		"always pipelining": func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"no pipelining":     func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{}, redistest.OneConnection, mode,
				func(o *rueidis.ClientOption) { o.ClientName = "under-test" })
			warm(t, c, "order")
			before := connections(t, s, "under-test")
			require.NotEmpty(t, before)
			s.Pause(t)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := c.NewLock("order").Lock(ctx, longLease)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = c.NewLock("order").TryLock(t.Context(), 50*time.Millisecond, longLease)
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			_, err = c.NewLock("order").IsLocked(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			s.Resume(t)
			waitUntilEmpty(t, s)
			require.Subset(t, connections(t, s, "under-test"), before, "a connection was closed")
		})
	}
}

// dials is a dialer that can be made to hang, as if packets to the address were lost.
type dials struct {
	hanging atomic.Bool
	begun   chan struct{} // receives a value for each dial that hangs
	release chan struct{} // closed when dials no longer hang
}

func newDials() *dials {
	return &dials{begun: make(chan struct{}, 100), release: make(chan struct{})}
}

func (d *dials) use(o *rueidis.ClientOption) {
	o.DialCtxFn = func(
		ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
	) (net.Conn, error) {
		if d.hanging.Load() {
			d.begun <- struct{}{}
			select {
			case <-d.release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return dialer.DialContext(ctx, "tcp", address)
	}
}

// hang makes new dials hang, and ends existing connections.
func (d *dials) hang(t *testing.T, s *redistest.Server) {
	t.Helper()
	d.hanging.Store(true)
	s.DoInt(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

func TestCallerReturnsInTimeWhileADialOfAnotherHangs(t *testing.T) {
	s := redistest.Start(t)
	d := newDials()
	c := newClient(t, s, rlock.Options{}, redistest.OneConnection, d.use)
	warm(t, c, "order")
	d.hang(t, s)
	waiting := inBackground(func() (*rlock.Hold, error) {
		return c.NewLock("order").TryLock(t.Context(), longWait, longLease)
	})
	receive(t, d.begun, "no dial")
	bestOf(t, onTime, func() time.Duration {
		const limit = 50 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		start := time.Now()
		_, err := c.NewLock("another").Lock(ctx, longLease)
		took := time.Since(start)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return took - limit
	})
	require.Empty(t, waiting, "callers that gave up ended the wait of the other")
	close(d.release)
	unlock(t, acquired(t, waiting))
	waitUntilEmpty(t, s)
}

func TestCallerThatGivesUpDoesNotEndTheDialOfOthers(t *testing.T) {
	s := redistest.Start(t)
	d := newDials()
	c := newClient(t, s, rlock.Options{}, redistest.OneConnection, d.use)
	warm(t, c, "order")
	d.hang(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	canceled := lockInBackground(ctx, c.NewLock("order"), longLease)
	receive(t, d.begun, "no dial") // it is shared from here on
	// There is only one attempt, so it fails if the dial does.
	other := inBackground(func() (*rlock.Hold, error) {
		return c.NewLock("another").TryLock(t.Context(), rlock.NoWait, longLease)
	})
	waitForGoroutines(t, "rlock.(*attempt).try", 2)
	cancel()
	require.ErrorIs(t, result(t, canceled).Err, context.Canceled)
	select {
	case o := <-other:
		require.NoError(t, o.Err, "its dial was ended")
	case <-time.After(50 * time.Millisecond):
	}
	close(d.release)
	unlock(t, acquired(t, other))
	waitUntilEmpty(t, s)
}

func TestCloseOfAClientOfAHungServerIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{})
		k.warm(t, c, "order")
		s.Pause(t)
		_, err := k.lock(c, "order").TryLock(t.Context(), 20*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		within(t, promptly, func() {
			err := c.Close(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		s.Resume(t)
		require.NoError(t, c.Close(t.Context()))
		requireFree(t, s, "order")
	})
}
