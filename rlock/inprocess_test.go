//go:build redis && !race

package rlock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// behaviour has the files whose tests say how locks behave.
var behaviour = []string{
	"arguments_refused", "close", "deadlock", "do", "downgrade", "extend", "exclusion", "fair",
	"fair_order", "fenced", "handover_modes", "handover_turns", "hold", "inspect", "lease",
	"local_queue", "lock_taken_away", "lost_reply", "nonreentrant", "owner", "protocol",
	"readers_queue", "readwrite", "reentry", "refusal", "same_owner_calls", "scriptflush",
	"shared_channel_names", "together", "trylock", "unlock", "wait", "writer_precedence",
}

// Why some of their tests need a real server. Package rlocktest tells its users.
const (
	asksForMore     = "INFO persistence"
	accessLists     = "an ACL"
	cluster         = "a cluster"
	replication     = "replicas"
	memory          = "a limit of the memory"
	disk            = "a disk"
	clientProcesses = "client processes, which speak RESP3"
	speed           = "a processor beside that of its clients"
	long            = "none, but the test takes long: another one shows the same"
)

var needsARealServer = map[string]string{
	"TestReadersQueuedBehindOneOfTheirClientHaveTheirTurnToo":                    speed,
	"TestTryLockWaitIsHonouredWithin20Milliseconds":                              speed,
	"TestManyCallsOfOneOwnerCountTheirLevelsRight":                               speed,
	"TestExtendOfOneLevelLastsForAll":                                            long,
	"TestLookingChangesNothing":                                                  asksForMore,
	"TestFencedLockWithoutACounterIsNotTakenAndAdvises":                          accessLists,
	"TestUserLimitedToRedissonsNamesWaitsAsBefore":                               accessLists,
	"TestUserLimitedToRedissonsNamesWakesOthersAndIsWoken":                       accessLists,
	"TestReleaseOnCloseReleasesWhatOtherNodesHave":                               cluster,
	"TestClusterHandsLocksOverWithShardedChannels":                               cluster,
	"TestClusterWithClassicChannelsHandsLocksOverWithinAProcessOnly":             cluster,
	"TestNameWhoseKeysWouldNotShareASlotIsRefusedOnACluster":                     cluster,
	"TestExtendThatIsRefusedChangesNothing":                                      replication,
	"TestLockThatReplicasMustHaveIsNotHandedOver":                                replication,
	"TestReplicaRefusesALockAtOnce":                                              replication,
	"TestServerThatBecameAReplicaIsWaitedFor":                                    replication,
	"TestServerOutOfMemoryRefusesALockAtOnce":                                    memory,
	"TestServerOutOfMemoryStillRenewsAndReleases":                                memory,
	"TestServerOutOfMemoryStillExtends":                                          memory,
	"TestServerOutOfMemoryKeepsTheLongestLeaseOfALevel":                          memory,
	"TestServerThatCannotSaveRefusesALockAtOnce":                                 disk,
	"TestTokenIncreasesWhateverEndedTheHoldBefore":                               disk,
	"TestStoppedWaiterDelaysAFairLockByLessThanTwentySeconds":                    clientProcesses,
	"TestWriterWhoseProcessDiedHoldsReadersBackForSeconds":                       clientProcesses,
	"TestNoTwoHoldersAmong32GoroutinesIn3Processes":                              clientProcesses,
	"TestWaitersOfFourProcessesAcquireAFairLockInTheOrderInWhichTheyWereStarted": clientProcesses,
	"TestKilledProcessDelaysAFairLockBySeconds":                                  clientProcesses,
	"TestContendingProcessesHoldTheLockEquallyOften":                             clientProcesses,
	"TestWatchdogKeepsALockForFiveLeases":                                        long,
	"TestNestedWatchdogLevelRenewsOnlyWhileItLasts":                              long,
	"TestWaiterBehindAnotherSaysWhoHoldsTheLock":                                 long,
	"TestHeldErrorSaysHowLongTheLockIsStillHeldWhenTheWaitEnds":                  long,
	"TestExtendOfALockWhoseLeaseIsOverReturnsErrLost":                            long,
	"TestPlainAndFencedWaitersOfOneNameAllProgress":                              long,
}

// Users test their programs against the server of package rlocktest, so it must not differ from
// Redis. The tests of behaviour are run again against it, by this test binary: what they prove for
// the one they prove for the other. Package rlocktest compares random calls.
//
// It is built without the race detector, under which the server runs Lua slowly, and not parallel:
// the server needs a processor.
func TestBehaviourIsTheSameOnTheServerForUsersTests(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	var tests []string
	for _, file := range behaviour {
		source, err := os.ReadFile(file + "_test.go")
		require.NoError(t, err)
		more, err := os.ReadFile(file + "_redis_test.go") // what is built with the tag redis only
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		for _, match := range declared.FindAllSubmatch(slices.Concat(source, more), -1) {
			tests = append(tests, string(match[1]))
		}
	}
	for name := range needsARealServer {
		require.Contains(t, tests, name, "is there such a test still?")
	}
	tests = slices.DeleteFunc(tests, func(name string) bool { return needsARealServer[name] != "" })
	require.Greater(t, len(tests), 100)

	path, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := exec.CommandContext(ctx, path, "-test.parallel=12", "-test.timeout=5m",
		"-test.run=^("+strings.Join(tests, "|")+")$")
	again.Env = append(os.Environ(), "HOLDFAST_TEST_BACKEND=inprocess")
	output, err := again.CombinedOutput()
	require.NoError(t, err, "%s", output)
	t.Logf("%d tests", len(tests))
}
