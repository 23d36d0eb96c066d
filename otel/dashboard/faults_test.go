//go:build nightly

package dashboard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/rlock"
)

// faults has what fails, in the order in which it happens: each causes a fault until ctx ends, and
// then undoes it.
var faults = []func(ctx context.Context, t *testing.T, s *service){
	// Keys are deleted.
	func(ctx context.Context, t *testing.T, s *service) {
		for ; ctx.Err() == nil; pause(ctx, time.Second) {
			keys := slices.DeleteFunc(s.server.Keys(t), func(key string) bool {
				return !strings.HasPrefix(key, "report:")
			})
			if len(keys) > 0 {
				s.server.Do(t, "DEL", keys[rand.IntN(len(keys))])
			}
		}
	},
	// Redis hangs for 2.4 s: renewals come when most of the lease is used up, or too late.
	func(ctx context.Context, t *testing.T, s *service) {
		for ; ctx.Err() == nil; pause(ctx, 2*time.Second) {
			s.server.Pause(t)
			pause(context.WithoutCancel(ctx), watchdogLease*8/10)
			s.server.Resume(t)
		}
	},
	// Renewals are refused.
	func(ctx context.Context, t *testing.T, s *service) {
		// So are calls for a lock whose key is something else.
		s.server.Do(t, "SET", "coupon", "10%")
		for _, p := range s.processes {
			p.use(ctx, p.client.NewLock("coupon"), job{rests: 20})
		}
		for ; ctx.Err() == nil; pause(ctx, watchdogLease) {
			// Those of the reports only: a client that may renew nothing stops handing over.
			s.server.Do(t, "ACL", "SETUSER", "shop", "-pexpire", "(+pexpire ~[^r]* ~redisson*)")
			pause(ctx, watchdogLease/2)
			s.server.Do(t, "ACL", "SETUSER", "shop", "clearselectors", "+pexpire")
		}
	},
	// Jobs need their lease.
	func(ctx context.Context, _ *testing.T, s *service) {
		for _, p := range s.processes {
			for i := range 3 {
				p.use(ctx, p.client.NewFencedLock(fmt.Sprintf("export:%d:%s", i, p.name)),
					job{lease: rlock.Lease(2 * time.Second), works: 1870, exactly: true, rests: 50})
			}
		}
		<-ctx.Done()
	},
	// One holder hangs.
	func(ctx context.Context, _ *testing.T, s *service) {
		const callers = 200
		deadline, _ := ctx.Deadline()
		interval := time.Until(deadline) / callers
		holder, err := s.processes[0].client.NewLock("invoice").Lock(ctx, rlock.Watchdog)
		if err != nil {
			return // all faults may happen again
		}
		for i := 0; ctx.Err() == nil; pause(ctx, interval) {
			p := s.processes[i%len(s.processes)]
			i++
			s.running.Go(func() {
				hold, err := p.client.NewLock("invoice").TryLock(context.WithoutCancel(ctx),
					time.Minute, rlock.Watchdog)
				if err == nil {
					_ = hold.Unlock()
				}
			})
		}
		_ = holder.Unlock()
	},
	// A node of the RedLock hangs.
	func(ctx context.Context, t *testing.T, s *service) {
		s.nodes[2].Pause(t)
		<-ctx.Done()
		s.nodes[2].Resume(t)
	},
}

// fail causes all faults, one after the other, with calm between them, in the given time.
func (s *service) fail(t *testing.T, within time.Duration) {
	t.Helper()
	each := within / time.Duration(len(faults))
	lasts := each * 8 / 10
	for _, cause := range faults {
		pause(t.Context(), (each-lasts)/2)
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		cause(ctx, t, s)
		cancel()
		pause(t.Context(), (each-lasts)/2)
	}
}
