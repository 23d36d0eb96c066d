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

// fault is something that fails.
type fault struct {
	name string // for a picture: two lines
	// cause causes it until ctx ends, and then undoes it.
	cause func(ctx context.Context, t *testing.T, s *service)
}

// faults has the faults in the order in which they happen.
var faults = []fault{
	{"keys are\ndeleted", func(ctx context.Context, t *testing.T, s *service) {
		for ; ctx.Err() == nil; pause(ctx, time.Second) {
			keys := slices.DeleteFunc(s.server.Keys(t), func(key string) bool {
				return !strings.HasPrefix(key, "report:")
			})
			if len(keys) > 0 {
				s.server.Do(t, "DEL", keys[rand.IntN(len(keys))])
			}
		}
	}},
	// Renewals come when most of the lease is used up, or too late.
	{"Redis hangs\nfor 2.4 s", func(ctx context.Context, t *testing.T, s *service) {
		for ; ctx.Err() == nil; pause(ctx, 2*time.Second) {
			s.server.Pause(t)
			pause(context.WithoutCancel(ctx), watchdogLease*8/10)
			s.server.Resume(t)
		}
	}},
	{"renewals\nare refused", func(ctx context.Context, t *testing.T, s *service) {
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
	}},
	{"jobs need\ntheir lease", func(ctx context.Context, _ *testing.T, s *service) {
		for _, p := range s.processes {
			for i := range 3 {
				p.use(ctx, p.client.NewFencedLock(fmt.Sprintf("export:%d:%s", i, p.name)),
					job{lease: 2 * time.Second, works: 1870, exactly: true, rests: 50})
			}
		}
		<-ctx.Done()
	}},
	{"one holder\nhangs", func(ctx context.Context, _ *testing.T, s *service) {
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
					_ = hold.Unlock(context.WithoutCancel(ctx))
				}
			})
		}
		_ = holder.Unlock(context.WithoutCancel(ctx))
	}},
	{"a node of the\nRedLock hangs", func(ctx context.Context, t *testing.T, s *service) {
		s.nodes[2].Pause(t)
		<-ctx.Done()
		s.nodes[2].Resume(t)
	}},
}

// episode is when a fault happened.
type episode struct {
	name       string
	start, end time.Time
}

// fail causes all faults, one after the other, with calm between them, in the given time.
func (s *service) fail(t *testing.T, within time.Duration) (episodes []episode) {
	t.Helper()
	each := within / time.Duration(len(faults))
	lasts := min(each*8/10, 45*time.Second)
	for _, f := range faults {
		pause(t.Context(), (each-lasts)/2)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		f.cause(ctx, t, s)
		cancel()
		episodes = append(episodes, episode{f.name, start, time.Now()})
		pause(t.Context(), (each-lasts)/2)
	}
	return episodes
}
