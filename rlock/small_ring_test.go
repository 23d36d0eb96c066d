package rlock_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A caller that found rueidis's queue full would be blocked until the connection is given up. With
// the default RingScaleEachConn, 10, the queue has 1024 places: see docs/operations.md.
func TestWaitsOfMoreCallersThanRueidisCanQueueAreExact(t *testing.T) {
	t.Parallel()
	inBubbleWith(t, redistest.OneConnection, rlock.Options{},
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			lock := c.NewLock("order")
			b.server.Pause()
			for range 2 { // from now on, callers send by themselves
				go func() { _, _ = lock.Info(t.Context()) }()
				synctest.Wait()
			}
			b.server.Resume()
			synctest.Wait()
			b.server.Pause()
			var callers sync.WaitGroup
			start := time.Now()
			for i := range 1000 {
				callers.Go(func() { // of one lock, only one would ask
					l := c.NewLock(strconv.Itoa(i))
					_, err := l.TryLock(t.Context(), 300*time.Millisecond, time.Minute)
					if errors.Is(err, rlock.ErrNotAcquired) || time.Since(start) != 300*time.Millisecond {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
				})
				callers.Go(func() {
					_, err := c.NewLock("order").Info(t.Context())
					if err == nil || time.Since(start) != 3*time.Second {
						t.Errorf("Info after %v: %v", time.Since(start), err)
					}
				})
			}
			callers.Wait()
			require.Equal(t, 3*time.Second, time.Since(start))
			b.server.Resume()
		})
}
