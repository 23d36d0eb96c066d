//go:build redis

package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLockLeavesAProcessAfter16HandOversOr100MillisecondsIfOthersWaitElsewhere(t *testing.T) {
	t.Parallel()
	const waiters = 40
	for name, c := range map[string]struct {
		section     time.Duration
		least, most int // sections in this process before the one elsewhere
	}{"short sections": {0, 16, 16}, "long sections": {30 * time.Millisecond, 1, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, givenAway(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				here := k.lock(newClient(t, s, rlock.Options{}), k.name)
				elsewhere := k.lock(newClient(t, s, rlock.Options{}), k.name)
				first := take(t, here, longLease)
				var history turns
				var line sync.WaitGroup
				for range waiters {
					line.Go(func() {
						hold, err := here.Lock(context.Background(), rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						history.take(0)(hold)
						pause(nil, c.section)
						if err := hold.Unlock(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				eventually(t, func() bool {
					return rlock.Waiting(here) == waiters && registrations(s, k.name) == 1
				}, "not all wait")
				other := registers(t, s, 2, elsewhere, longLease)
				waitForQuiet(t, s)
				start := time.Now()
				unlock(t, first)
				hold := acquired(t, other)
				took := time.Since(start)
				before := len(history.of)
				unlock(t, hold)
				line.Wait()
				require.LessOrEqual(t, before, c.most)
				// otherwise the machine is too busy
				if took < 100*time.Millisecond || c.section > 0 {
					require.GreaterOrEqual(t, before, c.least)
				}
				require.Len(t, history.of, waiters)
				waitUntilFree(t, s, k.name)
			})
		})
	}
}
