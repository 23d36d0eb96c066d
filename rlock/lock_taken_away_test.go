package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Waiters learn of a force unlock before its caller does. What they acquire then must not be freed.
func TestForceUnlockSparesTheNextHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		other := newClient(t, s, rlock.Options{})
		take(t, k.contender(other, k.name), longLease)

		gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.forceUnlock))
		c := newClientOn(t, gate, rlock.Options{})
		t.Cleanup(gate.open)
		waiter := k.parked(t, s, k.lock(c, k.name))
		forcing := make(chan error, 1)
		go func() {
			_, err := k.contender(c, k.name).ForceUnlock(t.Context())
			forcing <- err
		}()
		next := acquired(t, waiter)
		gate.open()
		require.NoError(t, receive(t, forcing, "ForceUnlock hangs"))
		require.NoError(t, next.Err())
		require.True(t, next.Valid())
		unlock(t, next)
	})
}
