//go:build interop

package redisson_test

import (
	"slices"
	"testing"
)

// promise is what holds between both sides.
type promise struct {
	name  string
	check func(*testing.T, *site)
}

// promises are kept on each topology.
var promises = []promise{
	{"ExcludeEachOtherAtEveryLevel", excludeEachOtherAtEveryLevel},
	{"LockIsAcquiredWhenTheLeaseOfTheOtherSideEnds", lockIsAcquiredWhenTheLeaseOfTheOtherSideEnds},
	{"ReleasedLockStaysTakenForJavaUntilAtLeast", releasedLockStaysTakenForJavaUntilAtLeast},
	{"ForceUnlockByTheOtherSideEndsTheHold", forceUnlockByTheOtherSideEndsTheHold},
	{"MixedFairQueueIsServedInOrder", mixedFairQueueIsServedInOrder},
	{"NonReentrantLocksRefuseTheirOwnersOnBothSides", nonReentrantLocksRefuseTheirOwnersOnBothSides},
	{"QueueOfBothFairLocksIsServedInOrder", queueOfBothFairLocksIsServedInOrder},
	{"ReadersOfBothSidesShareAndKeepWritersOut", readersOfBothSidesShareAndKeepWritersOut},
	{"DowngradeLetsReadersOfTheOtherSideIn", downgradeLetsReadersOfTheOtherSideIn},
	{"SameOperationsLeaveTheSameBytes", sameOperationsLeaveTheSameBytes},
}

// slowPromises take seconds of waiting, and are about times, not about channels and nodes: each is
// checked on one topology.
var slowPromises = map[string][]promise{
	"cluster": {
		{"WatchdogsKeepLocksFromTheOtherSide", watchdogsKeepLocksFromTheOtherSide},
	},
	"single": {
		{"KilledFairWaiterIsSkipped", killedFairWaiterIsSkipped},
		{"ReadLocksThatJavaStopsRenewingStayHeld", readLocksThatJavaStopsRenewingStayHeld},
	},
}

// promisesOfAKind has those of a kind that some releases do not have.
var promisesOfAKind = map[string]promise{
	fenced: {"FencingTokensGrowAcrossSides", fencingTokensGrowAcrossSides},
	spin:   {"SpinLockOfRedissonExcludesReentrantLock", spinLockOfRedissonExcludesReentrantLock},
}

// All tests share one Java process, with one owner per thread and one Redisson client per server.
func TestLocksOfRedissonAndOfHoldfast(t *testing.T) {
	java := startPeer(t)
	single, cluster, masters := newSingle(t, java), newCluster(t, java), newMasters(t, java)
	// Measurements come first, while nothing else runs.
	t.Run("UnlockWakesTheOtherSideWithin100ms", func(t *testing.T) {
		t.Run("single", func(t *testing.T) { unlockWakesTheOtherSideWithin100ms(t, single) })
		t.Run("cluster", func(t *testing.T) { unlockWakesTheOtherSideWithin100ms(t, cluster) })
		t.Run("masters", func(t *testing.T) {
			unlockOfARedLockWakesTheOtherSideWithin100ms(t, masters)
		})
	})
	t.Run("masters", func(t *testing.T) {
		t.Parallel()
		redLocksExcludeEachOther(t, masters)
	})
	for name, s := range map[string]*site{"single": single, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := slices.Concat(slowPromises[name], promises)
			for _, kind := range existing(fenced, spin) {
				all = append(all, promisesOfAKind[kind])
			}
			for _, promise := range all {
				t.Run(promise.name, func(t *testing.T) {
					t.Parallel()
					promise.check(t, s)
				})
			}
		})
	}
}
