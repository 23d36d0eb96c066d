//go:build redis

package redlock_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wait"
	"holdfast/redlock"
	"holdfast/rlock"
)

// manyLocks returns how many locks are taken.
func manyLocks(t *testing.T) int {
	t.Helper()
	return locktest.Times(t, "HOLDFAST_REDLOCK_LOCKS", 2000)
}

// footprint is what the process uses.
type footprint struct {
	goroutines     int
	objects, bytes int64
}

func weigh() footprint {
	runtime.GC()
	runtime.GC() // collects what finalizers of the first run released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), int64(m.HeapObjects), int64(m.HeapAlloc)}
}

// crowded is five nodes with clients of two processes that take lock after lock.
type crowded struct {
	servers []*redistest.Server
	clients []*rlock.Client
	held    *redlock.Lock // by the other process
}

func newCrowded(t *testing.T) *crowded {
	t.Helper()
	c := &crowded{servers: startNodes(t, 5)}
	// With one connection to each server, made at the start.
	c.clients = newClients(t, c.servers, rlock.Options{WatchdogLease: boundLease},
		redistest.OneConnection)
	warm(t, c.clients)
	others := newClients(t, c.servers, rlock.Options{WatchdogLease: boundLease},
		redistest.OneConnection)
	hold := acquired(t,
		lockInBackground(t.Context(), redlock.NewOn("held", hasty, others...), rlock.Watchdog))
	c.held = redlock.NewOn("held", hasty, c.clients...)
	t.Cleanup(func() { _ = hold.Unlock(t.Context()) })
	return c
}

// lock takes and releases the i-th lock: the same or a new one, with the watchdog or without. Every
// fourth one is held by another owner.
func (c *crowded) lock(t *testing.T, same *redlock.Lock, i int) {
	t.Helper()
	lease := []time.Duration{rlock.Watchdog, boundLease}[i/4%2]
	l := same
	switch i % 4 {
	case 1:
		l = redlock.NewOn(name, hasty, c.clients...)
	case 2:
		l = redlock.NewOn(name+strconv.Itoa(i), hasty, c.clients...)
	case 3:
		_, err := c.held.TryLock(t.Context(), rlock.NoWait, lease)
		requireUnlucky(t, err)
		return
	}
	unlock(t, again(t, l, lease))
}

func TestHungNodesCostABoundedNumberOfGoroutinesAndBytes(t *testing.T) {
	for _, hung := range []int{1, 2} {
		t.Run(strconv.Itoa(hung)+" of 5", func(t *testing.T) {
			n := manyLocks(t) / hung
			c := newCrowded(t)
			same := redlock.NewOn(name, hasty, c.clients...)
			for i := range 40 {
				c.lock(t, same, i)
			}
			before := weigh()
			for _, s := range c.servers[5-hung:] {
				s.Pause(t)
			}
			var early footprint
			most := 0
			for i := range n {
				c.lock(t, same, i)
				most = max(most, runtime.NumGoroutine())
				if i == n/5 {
					early = weigh()
				}
			}
			more := int64(n - n/5)
			late := weigh()
			bounded := func() bool { // by less than one object for each lock
				calls := int64(
					max(0, late.goroutines-early.goroutines),
				) // a call has about 50 objects
				return late.objects-early.objects < more/2+calls*100 &&
					late.bytes-early.bytes < more*100+calls*10_000
			}
			// On a busy machine some replies of the other nodes are still due; what hangs does so
			// for seconds.
			for end := time.Now().Add(promptly); !bounded() && time.Now().Before(end); {
				late = weigh()
			}
			t.Logf(
				"goroutines: %d before, %d at most, %d at the end; objects %d, %d, %d; bytes %d, %d, %d",
				before.goroutines,
				most,
				late.goroutines,
				before.objects,
				early.objects,
				late.objects,
				before.bytes,
				early.bytes,
				late.bytes,
			)

			// As many calls may be in flight to the two nodes that no quorum needs: those that
			// hang, or one that the others starve for a moment. Besides, a few goroutines work for
			// the present lock.
			require.LessOrEqual(t, most, before.goroutines+2*wait.Workers+30)
			atMost := func(n int) func() bool { return func() bool { return runtime.NumGoroutine() <= n } }
			eventually(t, atMost(before.goroutines+hung*wait.Workers+10+4*len(c.clients)),
				"the others have ended")
			require.True(t, bounded(), "what hangs costs memory for each lock")

			for _, s := range c.servers[5-hung:] {
				s.Resume(t)
			}
			// What hung gets its reply and is released. Only a command in the buffer of a
			// connection that was given up is executed without anyone knowing: it holds the node
			// for one lease.
			free := func() bool {
				for _, key := range keysOf(t, c.servers...) {
					if key[2:] != "held" {
						return false
					}
				}
				return true
			}
			if n > 5000 {
				<-time.After(boundLease)
			}
			eventually(t, free, "nothing is left on any node")
			eventually(
				t,
				atMost(before.goroutines+10+4*len(c.clients)),
				"those calls have ended",
			) // a client keeps four that are idle
			unlock(t, again(t, same, boundLease))
		})
	}
}
