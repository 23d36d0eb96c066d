//go:build interop

package redisson_test

import (
	"testing"
)

// claims are what holds between both sides, on every topology.
var claims = []struct {
	name  string
	check func(*testing.T, *site)
}{
	{"ExcludeEachOtherAtEveryLevel", excludeEachOtherAtEveryLevel},
	{"LockIsHadWhenTheLeaseOfTheOtherSideEnds", lockIsHadWhenTheLeaseOfTheOtherSideEnds},
	{"WatchdogsKeepLocksFromTheOtherSide", watchdogsKeepLocksFromTheOtherSide},
	{"ForceUnlockByTheOtherSideEndsTheHold", forceUnlockByTheOtherSideEndsTheHold},
	{"LocksOfAKilledProcessAreHadWhenTheLeaseEnds", locksOfAKilledProcessAreHadWhenTheLeaseEnds},
	{"KilledFairWaiterIsPassedOver", killedFairWaiterIsPassedOver},
	{"MixedFairQueueIsServedInOrder", mixedFairQueueIsServedInOrder},
	{"ReadersOfBothSidesShareAndKeepWritersOut", readersOfBothSidesShareAndKeepWritersOut},
	{"DowngradeLetsReadersOfTheOtherSideIn", downgradeLetsReadersOfTheOtherSideIn},
	{"FencingTokensGrowAcrossSides", fencingTokensGrowAcrossSides},
	{"SpinLockOfRedissonExcludesReentrantLock", spinLockOfRedissonExcludesReentrantLock},
	{"SameOperationsLeaveTheSameBytes", sameOperationsLeaveTheSameBytes},
	{"WaiterOfRedissonGetsItsTurnAmongHandOvers", waiterOfRedissonGetsItsTurnAmongHandOvers},
	{"WaiterOfThisLibraryGetsItsTurnAmongThreadsOfRedisson", waiterOfThisLibraryGetsItsTurnAmongThreadsOfRedisson},
}

// All tests share one Java process, which has one owner per thread, and one Redisson client per server.
func TestLocksOfRedissonAndOfHoldfast(t *testing.T) {
	java := startPeer(t)
	single, cluster, masters := newSingle(t, java), newCluster(t, java), newMasters(t, java)
	// Measurements come first: nothing else goes on.
	t.Run("UnlockWakesTheOtherSideWithin100ms", func(t *testing.T) {
		t.Run("single", func(t *testing.T) { unlockWakesTheOtherSideWithin100ms(t, single) })
		t.Run("cluster", func(t *testing.T) { unlockWakesTheOtherSideWithin100ms(t, cluster) })
		t.Run("masters", func(t *testing.T) { unlockOfARedLockWakesTheOtherSideWithin100ms(t, masters) })
	})
	t.Run("masters", func(t *testing.T) {
		t.Parallel()
		redLocksExcludeEachOther(t, masters)
	})
	for name, s := range map[string]*site{"single": single, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, claim := range claims {
				t.Run(claim.name, func(t *testing.T) {
					t.Parallel()
					claim.check(t, s)
				})
			}
		})
	}
}
