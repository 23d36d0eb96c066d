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
			const seconds = 10
			hold := take(t, c.NewLock("held"), rlock.Watchdog)
			down.Store(true)
			b.server.Disconnect()
			dials.Store(0)
			start := time.Now()
			var callers sync.WaitGroup
			for i := range 1000 {
				callers.Go(func() {
					_, err := c.NewLock(strconv.Itoa(i)).TryLock(t.Context(), seconds*time.Second, time.Minute)
					if err == nil || errors.Is(err, rlock.ErrNotAcquired) ||
						time.Since(start) != seconds*time.Second {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
				})
			}
			callers.Wait()
			require.Less(t, dials.Load(), int64(25*seconds))
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
