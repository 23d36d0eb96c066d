package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// These tests measure what nodes cost that hang while many locks are taken, HOLDFAST_REDLOCK_LOCKS
// of them. They count goroutines, so they are not parallel.

// boundLease is the lease of all locks here.
const boundLease = 5 * time.Second

// again takes a lock that was just released. Unlock does not wait for all nodes, and together with
// those that hang too many may not have executed it yet.
func again(t *testing.T, l *redlock.Lock, lease time.Duration) (hold *rlock.Hold) {
	t.Helper()
	eventually(t, func() bool {
		var err error
		hold, err = l.TryLock(t.Context(), rlock.NoWait, lease)
		if err != nil {
			requireUnlucky(t, err)
		}
		return err == nil
	}, "the lock is free")
	return hold
}

// requireUnlucky requires the error of a lock that was held; or, while two nodes hang and the
// machine is busy, of nodes that did not reply in time.
func requireUnlucky(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, redlock.ErrNoQuorum),
		"%v", err)
}

func TestNodeThatHangsIsAskedByTheLocksOfOneTimeoutOnly(t *testing.T) {
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn(name, hasty, clients...)
	servers[4].Pause(t)
	hold := again(t, l, boundLease)
	// before the unlock, which would withdraw a request not sent yet
	<-time.After(2 * hasty.NodeTimeout)
	unlock(t, hold)
	for range 50 {
		unlock(t, again(t, l, boundLease))
	}
	servers[4].Resume(t)
	waitUntilFree(t, servers...)
	// The first lock's request and its release, and before them those that loaded the scripts. If
	// each of the others asked as well, there would be a hundred more.
	eventually(t, func() bool { return servers[4].CommandStats(t)["evalsha"] > 0 }, "it goes on")
	stats := servers[4].CommandStats(t)
	require.Less(t, stats["evalsha"]+stats["eval"], 25, "other locks asked it as well")

	// It is asked again once its client has read the replies.
	eventually(t, func() bool {
		hold := again(t, l, longLease)
		defer unlock(t, hold)
		parts := func() int { return l.Parts(hold) + l.Asked(hold) }
		return parts() == len(servers)
	}, "it is part of the next hold")
	waitUntilFree(t, servers...)
}
