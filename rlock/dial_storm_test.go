//go:build redis

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
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

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
			require.NoError(t, hold.Err())

			waiter := lockInBackground(t.Context(), c.NewLock("order"), time.Minute)
			time.Sleep(5 * time.Second)
			start = time.Now()
			_, err := c.NewLock("now").TryLock(t.Context(), rlock.NoWait, time.Minute)
			require.Error(t, err)
			require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
			down.Store(false)
			start = time.Now()
			_, err = c.NewLock("now").TryLock(t.Context(), 150*time.Millisecond, time.Minute)
			require.NoError(t, err)
			unlock(t, acquired(t, waiter))
			require.LessOrEqual(t, time.Since(start), time.Second+150*time.Millisecond)
			unlock(t, hold)
		})
}
