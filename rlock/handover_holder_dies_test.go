//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A release that hands the lock over wakes no other waiter, and waiters know only of the lease
// before.
func TestHolderThatDiesAfterAHandOverBlocksOthersForOneLease(t *testing.T) {
	t.Parallel()
	const (
		lease = 200 * time.Millisecond
		// noise is ten times what is measured, and with the lease less than the 5 s after which
		// every waiter asks.
		noise = 3 * time.Second
	)
	for name, mode := range map[string]rlock.HandOver{
		"to all": rlock.HandOverAnywhere, "local": rlock.HandOverLocal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				if k.mode != "" {
					// a read-write lock that is lost is still released, which is announced: see
					// package lua
					continue
				}
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					s := redistest.Start(t)
					here := newClient(t, s, rlock.Options{HandOver: mode})
					waiters := []*rlock.Client{here}
					if k.grants && mode == rlock.HandOverAnywhere || k.lonely {
						waiters[0] = newClient(t, s, rlock.Options{HandOver: mode})
					}
					for range 3 {
						waiters = append(waiters, newClient(t, s, rlock.Options{HandOver: mode}))
					}
					first := take(t, k.lock(here, k.name), longLease)
					waiting := make(chan outcome, len(waiters))
					for _, c := range waiters {
						go func() { waiting <- <-lockInBackground(t.Context(), k.lock(c, k.name), lease) }()
						waitForQuiet(t, s)
					}
					unlock(t, first)
					last := receive(t, waiting, "nobody was given the lock")
					require.NoError(t, last.Err)
					for range waiters[1:] { // none of them unlocks
						next := receive(t, waiting, "nobody has the lock after a death")
						require.NoError(t, next.Err)
						require.False(t, next.At.Before(last.Hold.Deadline()), "two hold the lock")
						require.Less(t, next.At.Sub(last.At), lease+noise)
						last = next
					}
				})
			}
		})
	}
}
