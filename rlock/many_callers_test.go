//go:build !race

package rlock_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A caller that found rueidis's queue full would be blocked until the connection is given up: see
// docs/configuration.md. By default the queue has 1024 places.
//
// The race detector crashes if two processors run timers of a bubble at the same instant, which is
// likely with thousands of timers. See https://github.com/golang/go/issues/78156.
func TestWaitsOfMoreCallersThanRueidisCanQueueAreExact(t *testing.T) {
	t.Parallel()
	for ring, callersOfEach := range map[int]int{10: 1000, 9: 156} {
		change := func(o *rueidis.ClientOption) {
			redistest.OneConnection(o)
			o.RingScaleEachConn = ring
		}
		inBubbleWith(t, change, rlock.Options{},
			func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
				b.server.Pause()
				for range 2 { // from now on, callers send by themselves
					go func() { _, _ = c.NewLock("order").Info(t.Context()) }()
					synctest.Wait()
				}
				b.server.Resume()
				synctest.Wait()
				b.server.Pause()
				var callers sync.WaitGroup
				start := time.Now()
				for i := range callersOfEach {
					callers.Go(func() { // of one lock, only one would ask
						l := c.NewLock(strconv.Itoa(i))
						_, err := l.TryLock(t.Context(), 300*time.Millisecond, rlock.Lease(time.Minute))
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
				b.server.Resume()
			})
	}
}
