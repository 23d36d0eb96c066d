package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A command that rueidis gives up may be executed later than what undoes it: rueidis has several
// connections. And a message about a grant may come later than its lock is gone.

// keeper is a rueidis client that, once, keeps a command with a given argument until it is told to
// go on. Then it sends it or, if it gives up, reports that no reply came in time.
type keeper struct {
	rueidis.Client
	givesUp  bool
	argument atomic.Value  // a string; "" lets everything pass
	kept     chan []string // receives the command
	goOn     chan struct{} // closed when it goes on
}

func keepOne(c rueidis.Client, givesUp bool) *keeper {
	k := &keeper{Client: c, givesUp: givesUp, kept: make(chan []string, 1),
		goOn: make(chan struct{})}
	k.argument.Store("")
	return k
}

func (k *keeper) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words, argument := slices.Clone(command.Commands()), k.argument.Load().(string)
	if argument != "" && slices.Contains(words, argument) &&
		k.argument.CompareAndSwap(argument, "") {
		k.kept <- words
		<-k.goOn
		if k.givesUp {
			over, cancel := context.WithTimeout(context.Background(), 0)
			defer cancel()
			ctx = over
		}
	}
	return k.Client.Do(ctx, command)
}

// keeping returns an anonymous client whose first command about the lock "order" is kept.
func keeping(t *testing.T, redis rueidis.Client, worker bool) (*rlock.Client, *keeper) {
	t.Helper()
	k := keepOne(redis, true)
	c := newClientOn(t, k, anonymous)
	if worker {
		rlock.Detach(c)
	}
	unlock(t, take(t, c.NewLock("warm"), longLease)) // loads the scripts
	k.argument.Store("order")
	return c, k
}

func TestLockTakenLateIsReleased(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]struct{ worker, leaves bool }{
		"by a worker whose caller acquires it again": {true, false},
		"by a worker whose caller has left":          {true, true},
		"by a caller that has left":                  {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c, redis := keeping(t, s.Client(t, redistest.OneConnection), by.worker)
			sent := s.CommandStats(t)["evalsha"]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			locking := lockInBackground(ctx, c.NewLock("order"), longLease)
			command := receive(t, redis.kept, "nothing is sent")
			if by.leaves {
				cancel()
			}
			if by.leaves && by.worker {
				require.ErrorIs(t, result(t, locking).Err, context.Canceled)
			}
			close(redis.goOn)
			if !by.leaves {
				unlock(t, acquired(t, locking))
			} else if !by.worker {
				require.ErrorIs(t, result(t, locking).Err, context.Canceled)
			}
			eventually(t, func() bool { return s.CommandStats(t)["evalsha"] > sent },
				"nothing is cleaned up")
			waitUntilFree(t, s, "order")
			_, refused := s.Do(t, command...).([]any)
			require.False(t, refused, "it takes the lock")
			waitUntilFree(t, s, "order")
		})
	}
}

// A holder's lease ends while its release is under way. The next waiter gets the lock by asking,
// and gives it back. Then an earlier request of the holder takes the lock, and the release gives it
// away. Its successor would have been a waiter whose hold is over.
func TestReleaseAfterALateRequestGivesTheLockToNobodyWhoIsGone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	gate := keepOne(s.Client(t), false)
	c, redis := keeping(t, gate, true)
	locking := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	command := receive(t, redis.kept, "nothing is sent")
	close(redis.goOn)
	first := acquired(t, locking)

	waiter := registers(t, s, 1, c.NewLock("order"), longLease)
	gate.argument.Store(first.Owner())
	released := make(chan error, 1)
	go func() { released <- first.Unlock() }()
	receive(t, gate.kept, "the release was not sent")
	s.Do(t, "DEL", "order")
	s.Do(t, "PUBLISH", channelOf("order"), "1") // wakes all waiters
	unlock(t, acquired(t, waiter))
	waitUntilFree(t, s, "order")

	_, refused := s.Do(t, command...).([]any)
	require.False(t, refused, "it takes the lock")
	close(gate.goOn)
	require.NoError(t, receive(t, released, "the release hangs"))
	waitUntilFree(t, s, "order")
}

func TestOutcomeStaysUnknownWhenAReplyLaterThanTheLeaseIsFollowedByARejection(t *testing.T) {
	inBubble(t, anonymous, func(t *testing.T, b *bubble) {
		b.reply("acquire.lua", func([]string) any {
			time.Sleep(2 * time.Second)
			b.reply("acquire.lua", func([]string) any { return errors.New("LOADING for now") })
			return nil
		})
		_, err := b.lock.TryLock(t.Context(), 5*time.Second, rlock.Lease(time.Second))
		require.ErrorContains(t, err, "LOADING")
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	})
}

// Close ends the pause before a clean-up, but not the lock that was left.
func TestCloseDoesNotEndALeftLockWithALateRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, redis := keeping(t, s.Client(t), true)
	locking := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	receive(t, redis.kept, "nothing is sent")
	close(redis.goOn)
	acquired(t, locking).Leave()
	closeClient(t, c)
	require.True(t, exists(s, "order"))
}

// The lease in Redis begins when the command gets there, and ends later than the deadline of the
// hold, by the drift of all of it.
func TestLeftLockWithALateRequestStaysForAllOfItsLease(t *testing.T) {
	const delay, lease = 2 * time.Second, time.Hour
	inBubble(t, anonymous, func(t *testing.T, b *bubble) {
		b.reply("acquire.lua", func([]string) any { time.Sleep(delay); return nil })
		hold := take(t, b.lock, rlock.Lease(lease))
		rlock.MakeLate(hold, lease)
		time.Sleep(time.Until(hold.Deadline()) - time.Second)
		hold.Leave()
		time.Sleep(lease)
		released := b.called("release.lua")
		require.NotEmpty(t, released, "it is not cleaned up")
		require.GreaterOrEqual(t, released[0], delay+lease)
	})
}

// A grant message may be about the lock that was left, but not once its lease is over: then a
// release has granted the lock to an owner that waits no longer, and others wait for it.
func TestGrantAfterTheLeaseOfALeftLockIsGivenBack(t *testing.T) {
	inBubble(t, anonymous, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Lease(2*time.Second))
		rlock.Register(hold)
		hold.Leave()
		time.Sleep(time.Second)
		rlock.GrantLate(b.client, hold)
		synctest.Wait()
		require.Empty(t, b.called("release.lua"), "the lock that was left is released")
		time.Sleep(7 * time.Second) // the lease, and a CommandTimeout
		rlock.GrantLate(b.client, hold)
		synctest.Wait()
		require.Len(t, b.called("release.lua"), 1)
	})
}

// Somebody else may have got the lock from the first command if that was executed, and keeps it. Of
// two readers one may leave meanwhile: the other is still there, so it was not executed.
func TestForceUnlockWhoseConnectionEndsIsSentAgainWhileAnOwnerStays(t *testing.T) {
	t.Parallel()
	for now, forced := range map[string]int{"a:1 b:2": 2, "b:2": 2, "another:3": 1, "": 1} {
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			state := func(owners string) func([]string) any {
				holds := []any{}
				for _, owner := range strings.Fields(owners) {
					holds = append(holds, owner, "1")
				}
				return func([]string) any { return []any{30_000, holds} }
			}
			b.reply("inspect.lua", state("a:1 b:2"))
			b.reply("force_unlock.lua", func([]string) any {
				b.reply("inspect.lua", state(now))
				b.reply("force_unlock.lua", released)
				b.server.Disconnect()
				return nil
			})
			held, err := b.lock.ForceUnlock(t.Context())
			require.NoError(t, err, now)
			require.True(t, held)
			require.Len(t, b.called("force_unlock.lua"), forced, now)
		})
	}
}

// writer is an owner that has the write lock of the pair "order", behind a proxy.
type writer struct {
	pair  *rlock.ReadWriteLock
	ctx   context.Context // of the owner
	hold  *rlock.Hold
	proxy *faultproxy.Proxy
}

func writing(t *testing.T, s *redistest.Server, options rlock.Options) *writer {
	t.Helper()
	c, p := proxied(t, s, options)
	w := &writer{pair: c.NewReadWriteLock("order"), ctx: rlock.WithOwner(t.Context()), proxy: p}
	for _, k := range []string{"read", "write"} {
		kindNamed(k).warm(t, c, "order")
	}
	w.hold = takeWith(w.ctx, t, w.pair.Write(), longLease)
	return w
}

// cut loses all replies to a script from now on.
func (w *writer) cut(t *testing.T, file string) *faultproxy.Fault {
	t.Helper()
	return w.proxy.CutReply(script(t, file), 1000)
}

// loseRead acquires the read lock, and no reply comes, however often the request is sent.
func (w *writer) loseRead(t *testing.T) {
	t.Helper()
	lost := w.cut(t, "read_acquire.lua")
	_, err := w.pair.Read().TryLock(w.ctx, rlock.NoWait, longLease)
	lost.End()
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

func TestReadLockOfTheWriterWhoseReplyIsLostIsUndone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := writing(t, s, rlock.Options{})
	w.loseRead(t)
	readHold := "{order}:" + w.hold.Owner() + ":rwlock_timeout:1"
	eventually(t, func() bool { return absent(s, readHold) }, "a read hold that nobody knows of")
	require.Equal(t, map[string]string{"mode": "write", w.hold.Owner() + ":write": "1"}, counts(t, s))
	require.True(t, w.hold.Valid())

	// A writer that leaves meanwhile must not stay a reader for ever.
	w.loseRead(t)
	unlock(t, w.hold)
	waitUntilFree(t, s, "order")
}

func TestReadLockThatTheWriterTakesAgainIsNotUndone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := writing(t, s, rlock.Options{})
	for range 20 {
		w.loseRead(t)
		reading := takeWith(w.ctx, t, w.pair.Read(), longLease)
		require.Equal(t, "1", counts(t, s)[reading.Owner()])
		unlock(t, reading) // ErrLost if the cleanup had removed it
	}
	unlock(t, w.hold)
	waitUntilFree(t, s, "order")
}
