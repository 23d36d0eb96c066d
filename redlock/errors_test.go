package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestRoundThatTheEndOfTheWaitCutsShortDoesNotHideWhatWasKnownBefore(t *testing.T) {
	t.Parallel()
	const lease, wait = 2 * time.Second, 3 * time.Second
	o := redlock.Options{FsyncAlways: true, NodeTimeout: time.Minute}
	inBubble(t, o, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", heldBy("somebody", int(lease.Milliseconds())))
			time.AfterFunc(lease/2, n.server.Pause)
		}
		_, err := b.lock.TryLock(t.Context(), wait, longLease)
		require.Equal(t, wait, time.Since(b.start))
		asked := b.rounds()
		require.Less(t, asked[len(asked)-1], lease/2, "no node executes a request of the last round")
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "held by somebody")
	})
}

// Its nodes were not asked, because a waiter of this process was queued before it.
func TestErrorOfALockThatAskedNoNodeDoesNotSayThatClientsAreClosed(t *testing.T) {
	err := error(&redlock.QuorumError{Want: 3})
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrClosed)
}
