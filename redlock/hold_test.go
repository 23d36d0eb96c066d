package redlock_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestUnlockOfAHoldThatAQuorumHasLostSaysSoAndReleasesTheRest(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, longLease)
	waitUntilHeld(t, servers)
	for _, s := range servers[:2] {
		s.Do(t, "DEL", name)
	}
	unlock(t, hold)
	waitUntilFree(t, servers...)

	hold = take(t, lock, longLease)
	waitUntilHeld(t, servers)
	for _, s := range servers[:3] {
		s.Do(t, "DEL", name)
	}
	err := hold.Unlock(t.Context())
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorContains(t, err, "a, b, c: ")
	waitUntilFree(t, servers...)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
}

func TestGrantsThatComeAfterTheQuorumAreKeptAndReleasedByUnlock(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	warm(t, clients)
	for _, s := range servers[3:] {
		s.Pause(t)
	}
	patient := redlock.Options{FsyncAlways: true, NodeTimeout: longWait}
	lock := redlock.NewOn(name, patient, clients...)
	hold := acquired(t, lockInBackground(t.Context(), lock, longLease))
	for _, s := range servers[3:] {
		s.Resume(t)
	}
	waitUntilHeld(t, servers)
	require.Equal(t, []string{hold.Owner()}, slices.Compact(ownersOf(t, servers, name)))
	// They count: without two others there is still a quorum.
	eventually(t, func() bool { return lock.Parts(hold) == 5 }, "the late answers are noted")
	for i := range 2 {
		_, err := clients[i].NewLock(name).ForceUnlock(t.Context())
		require.NoError(t, err)
	}
	require.True(t, hold.Valid())
	unlock(t, hold)
	waitUntilFree(t, servers...)
}
