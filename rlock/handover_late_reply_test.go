package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The release has handed the lock to its successor, and only the reply is late. The successor does
// not wait for it: it asked by itself, and holds the lock when the reply comes, which must not be
// taken for that of a waiter that left.
func TestSuccessorThatAskedByItselfKeepsTheLockWhenTheReplyToTheReleaseComes(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.release))
		c := newClientOn(t, gate, rlock.Options{})
		t.Cleanup(gate.open)
		first := take(t, k.lock(c, k.name), longLease)
		waiter := k.parked(t, s, k.lock(c, k.name))
		released := make(chan error, 1)
		go func() { released <- first.Unlock(t.Context()) }()
		receive(t, gate.kept, "the release was not sent")
		s.Do(t, "PUBLISH", k.channel+":{"+k.name+"}", "1") // wakes all waiters
		successor := acquired(t, waiter)
		gate.pass()
		require.NoError(t, receive(t, released, "the release hangs"))

		gate.open()
		// comes after all that the clean-up has sent
		unlock(t, take(t, c.NewLock("another"), longLease))
		require.Equal(t, k.hash(successor.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		require.NoError(t, successor.Unlock(t.Context()))
		requireFree(t, s, k.name)
	})
}
