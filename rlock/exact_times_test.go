package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A server that keeps replying with 0 ms must not make the waiter spin.
func TestWaiterNeverParksForNothing(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func(args []string) any {
			if len(b.called(k.acquire)) > 10_000 { // time stands still for a waiter that spins
				return granted[k.acquire](args)
			}
			return heldFor(0)(args)
		})
		_, err := b.lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.LessOrEqual(t, len(b.called(k.acquire)), 15,
			"a lease that is over and does not end is looked at less and less often")
	})
}

func TestWaiterBacksOffWhileTheServerIsLoading(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func([]string) any { return errors.New("LOADING the dataset") })
		waiter := lockInBackground(t.Context(), b.lock, rlock.Watchdog)
		time.Sleep(time.Minute)
		synctest.Wait()
		tries := b.called(k.acquire)
		require.Less(t, len(tries), 2*60+10, "not much more than once a half second")
		for i := range tries[1:] {
			require.LessOrEqual(t, tries[i+1]-tries[i], time.Second)
		}
		b.reply(k.acquire, granted[k.acquire])
		unlock(t, acquired(t, waiter))
		require.LessOrEqual(t, time.Since(b.start), time.Minute+time.Second)
	})
}

func TestUnconfirmedPartialUnlockOfALockThatIsGoneSaysLost(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		outer := take(t, b.lock, rlock.Lease(time.Minute))
		inner := takeWith(outer.Context(), t, b.lock, rlock.Lease(time.Minute))
		b.reply(k.release, func([]string) any {
			if len(b.called(k.release)) == 1 {
				b.server.Disconnect()
			}
			return []any{-1, ""}
		})
		require.ErrorIs(t, inner.Unlock(), rlock.ErrLost)
		require.Len(t, b.called(k.release), 2)
		require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	})
}

// A balancer without a server accepts connections and closes them at once.
func TestCallersOfAServerThatCannotBeReachedShareTheirDials(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	var down atomic.Bool
	change := func(o *rueidis.ClientOption) {
		dial := o.DialCtxFn
		o.DialCtxFn = func(ctx context.Context, a string, d *net.Dialer, c *tls.Config,
		) (net.Conn, error) {
			dials.Add(1)
			if !down.Load() {
				return dial(ctx, a, d, c)
			}
			near, far := net.Pipe()
			return near, far.Close()
		}
	}
	inBubbleWith(t, change, rlock.Options{},
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			const wait = 10 * time.Second
			hold := take(t, c.NewLock("held"), rlock.Watchdog)
			down.Store(true)
			b.server.Disconnect()
			dials.Store(0)
			start := time.Now()
			var callers sync.WaitGroup
			for i := range 1000 {
				callers.Go(func() {
					_, err := c.NewLock(strconv.Itoa(i)).TryLock(t.Context(), wait, rlock.Lease(time.Minute))
					if err == nil || errors.Is(err, rlock.ErrNotAcquired) || time.Since(start) != wait {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
				})
			}
			callers.Wait()
			require.Less(t, dials.Load(), int64(1000), "at least one for each caller")
			down.Store(false)
			unlock(t, hold)
		})
}

// rueidis lets a caller wait for a dial that another one has begun, for 5 s.
func TestWaitIsExactWhileACleanupDials(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		option := b.server.ClientOption()
		redistest.OneConnection(&option) // the two need the same one
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		defer redis.Close()
		client := newClientOn(t, redis, rlock.Options{})
		defer closeClient(t, client)
		defer b.server.Resume()
		lock := k.lock(client, "lock")
		b.server.Pause()
		for range 2 { // from now on, callers send by themselves
			go func() { _, _ = lock.Info(t.Context()) }()
			synctest.Wait()
		}
		b.server.Resume()
		synctest.Wait()

		b.server.Pause()
		b.server.Disconnect()
		synctest.Wait()
		go rlock.CleanUp(lock, client.ID()+":1")
		synctest.Wait()
		start := time.Now()
		_, err = lock.TryLock(t.Context(), 1234567*time.Microsecond, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.Equal(t, 1234567*time.Microsecond, time.Since(start))
	})
}

// The rest is for undoing the acquisition: the caller learns what is wrong.
func TestReplicasAreWaitedForHalfOfTheWaitThatIsLeft(t *testing.T) {
	t.Parallel()
	options := rlock.Options{SyncReplicas: 1, SyncTimeout: time.Minute}
	inBubbleWith(t, func(*rueidis.ClientOption) {}, options,
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			replicas(b, false)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, waits := c.NewLock("order").TryLock(t.Context(), 4*time.Second, longLease)
			_, deadline := c.NewLock("order").Lock(ctx, longLease)
			for err, waited := range map[error]time.Duration{
				waits: 2 * time.Second, deadline: 4 * time.Second, // of the eight that were left
			} {
				var short *rlock.ReplicationError
				require.ErrorAs(t, err, &short)
				require.Equal(t, waited, short.Waited)
			}
			require.Equal(t, 6*time.Second, time.Since(b.start))
			require.Len(t, b.called("release.lua"), 2, "undone")
		})
}

// rueidis soon gives up all commands by itself but a WAIT.
func TestServerThatHangsDuringWaitDoesNotDelayTryLock(t *testing.T) {
	t.Parallel()
	const wait, timeout = 3 * time.Second, 300 * time.Millisecond
	change := func(o *rueidis.ClientOption) { o.ConnWriteTimeout = timeout }
	options := rlock.Options{SyncReplicas: 1, SyncTimeout: time.Minute, CommandTimeout: timeout}
	inBubbleWith(t, change, options,
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			hang, resumed := sync.OnceFunc(b.server.Pause), make(chan struct{})
			b.server.Handle("WAIT", func([]string) any {
				hang()
				<-resumed
				return 0
			})
			_, err := c.NewLock("order").TryLock(t.Context(), wait, longLease)
			require.Equal(t, wait, time.Since(b.start))
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			require.Empty(t, b.called("release.lua"))
			b.server.Resume()
			close(resumed)
			time.Sleep(time.Minute)
			require.NotEmpty(t, b.called("release.lua"), "it is not undone")
		})
}
