//go:build redis

package rlock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestClusterKnowsWhoAClientIs(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	for _, name := range oneLockPerNode(t, cluster) {
		take(t, c.NewLock(name), longLease)
	}
	var holders []*rlock.Hold
	for _, node := range cluster.Nodes {
		holders = append(holders, take(t, c.NewLock("{"+node.Addr()+"}"), longLease))
	}
	waitForIdentity(t, nodeOf(t, cluster, identityOf(c)), c)
	for _, hold := range holders {
		require.True(t, hold.Valid())
	}
}

func TestServerThatRestartsEmptyIsToldAgainWhoAClientIs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: watchedLease})
	take(t, c.NewLock("order"), longLease) // which is not renewed, so it is not found lost
	waitForIdentity(t, s, c)
	s.Restart(t)
	waitForIdentity(t, s, c)
}

func TestUserWhoseACLForbidsTheIdentityWorksWithoutAndNobodyIsTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "resetkeys", "~order", "~holdfast_lock_waiters:*")
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{WatchdogLease: watchedLease, Logger: log.Logger()}, asUser)
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	waitForRenewal(t, []*rlock.Hold{hold})
	unlock(t, hold)
	unlock(t, take(t, c.NewLock("order"), rlock.Watchdog))
	closeClient(t, c)
	require.Empty(t, log.With(""))
	require.True(t, absent(s, identityOf(c)))
	require.Equal(t, 1, denials(t, s), "one attempt")
}

// denials returns how often the ACL has forbidden something to clients, but for rueidis' question
// whether this is a cluster.
func denials(t testing.TB, s *redistest.Server) (n int) {
	t.Helper()
	for _, entry := range s.Do(t, "ACL", "LOG").([]any) {
		fields := entry.([]any)
		value := func(name string) any { return fields[slices.Index(fields, any(name))+1] }
		if object := value("object").(string); !strings.HasPrefix(object, "cluster") {
			n += int(value("count").(int64))
		}
	}
	return n
}

// Close waits for a hung server no longer than it says.
func TestHungServerDoesNotKeepTheIdentityOfAClientFromBeingClosed(t *testing.T) {
	t.Parallel()
	for name, mode := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{}, mode)
			unlock(t, take(t, c.NewLock("order"), longLease))
			waitForIdentity(t, s, c)
			s.Pause(t)
			within(t, promptly, func() { closeClient(t, c) })
			s.Resume(t)
		})
	}
}
