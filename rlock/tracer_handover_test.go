//go:build redis

package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Once a lock has stayed in a client for 100 ms, its release gives it to the waiter that registered
// first, in whatever client. The message says whether the release was by that client.
func TestTracerHearsWhetherAReleaseOfTheSameClientGaveTheLockToARegisteredWaiter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		there := newClient(t, s, rlock.Options{})
		for _, next := range []struct {
			by  *rlock.Client
			how rlock.How
		}{{c, rlock.HandedOver}, {there, rlock.Granted}, {c, rlock.HandedOver}} {
			hold := take(t, k.lock(next.by, k.name), longLease)
			rlock.EndTurns(hold)
			waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
			tr.Forget()
			unlock(t, hold)
			hold = acquired(t, waiter)
			require.Equal(t, next.how, only[rlock.HoldStart](t, tr).How)
			require.Equal(t, next.how, only[rlock.AcquireEnd](t, tr).How)
			unlock(t, hold)
		}
	})
}
