package integration_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
	"holdfast/integration/history"
	"holdfast/internal/doctable"
)

// The table in README.md is generated from the chaos scenarios and the lists below; this test
// compares them. To generate it:
//
//	HOLDFAST_UPDATE=1 go test ./integration -run TestTable

const (
	tableBegin = "<!-- table: written by TestTableInREADMEIsTrue -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// after has the invariants that promise something only for the time after a fault: a waiter that is
// cut off can neither be woken nor stay in the queue.
var after = []string{history.Fairness, history.WakeUps, history.Progress, history.Remains}

// forgotten has the invariants that a server that forgets breaches.
var forgotten = []string{history.Exclusion, history.Linearizable, history.Kept, history.Fences}

// own has the tests about a single fault, by its name. Each must exist.
var own = map[string][]string{
	chaos.Partition.Name: {
		"rlock.TestHoldEndsExactlyAtItsDeadlineWithoutRepliesToRenewals",
		"rlock.TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes",
		"redlock.TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes",
		"integration.TestWaitersGetTheirLocksOfAServerThatWasCutOff",
	},
	chaos.RequestsLost.Name: {
		"integration.TestAcquisitionWhoseRequestsAreLostIsUnknownInTimeAndLeavesTheLockFree",
		"integration.TestReleaseWhoseRequestsAreLostIsUnconfirmedAndTheLockIsFreeWhenItsLeaseEnds",
	},
	chaos.RepliesLost.Name: {
		"rlock.TestHoldEndsExactlyAtItsDeadlineWithoutRepliesToRenewals",
		"rlock.TestReleaseWhoseRepliesAreAllLostIsFreeAtOnce",
		"multilock.TestReleaseWhoseRepliesAreAllLostIsFreeAtOnce",
	},
	chaos.RepliesLate.Name: {
		"rlock.TestAcquireThatTookLongerThanItsLeaseFails",
		"rlock.TestAcquireWhoseReplyComesAfterItsLeaseIsNotTrusted",
		"redlock.TestGrantsThatComeAfterAFailureAreReleased",
		"redlock.TestExtendWhoseRepliesComeAfterTheDeadlineIsALoss",
	},
	chaos.MessagesLost.Name: {
		"rlock.TestWaiterAsksEveryFiveSecondsAtTheLatest",
		"rlock.TestWaiterAsksWhenTheLeaseShouldBeOver",
	},
	chaos.MessagesLate.Name: {
		"rlock.TestGrantThatComesAfterItsLeaseIsNotTrusted",
		"rlock.TestGrantOfWhichHalfIsOverIsConfirmedBeforeItIsTrusted",
		"rlock.TestDeadlineOfALockThatWasHandedOverIsNotLaterThanItsExpiry",
	},
	chaos.Slow.Name: {
		"integration.TestSlowNetworkDelaysWakeUpsByItsOwnTimeOnlyAndIsCountedAgainstTheHold",
		"redlock.TestSlowMinorityDoesNotSlowTheLockDown",
		"redlock.TestSlowMajorityIsAnErrorIfItsTimeIsTooShort",
	},
	chaos.Reset.Name: {
		"rlock.TestBrokenConnectionLeavesTheOutcomeUnknown",
		"rlock.TestUnlockWhileTheSubscriptionIsDownWakesTheWaiterAfterwards",
		"pubsub.TestLostConnectionIsReplacedAndWakesAll",
	},
	chaos.Refused.Name: {
		"rlock.TestWaiterWaitsForAServerThatIsDown",
		"rlock.TestUnlockOnAnUnreachableServerIsFinishedInTheBackground",
		"pubsub.TestNodeThatIsDownIsDialledWithGrowingDelaysAndRefresh",
	},
	chaos.CutReplies.Name: {
		"rlock.TestLostReplyOfAnAcquireCountsOnce", "rlock.TestLostReplyOfANestedLockCountsOnce",
		"rlock.TestReleaseWhoseReplyIsLostIsARelease",
		"rlock.TestRenewalIsRetriedAfterALostReply", "rlock.TestFairQueueSurvivesLostReplies",
		"rlock.TestTokenIsKeptWhenTheReplyToTheAcquisitionIsLost",
		"multilock.TestReleaseWhoseReplyIsLostIsARelease",
	},
	chaos.Refusals.Name: {
		"rlock.TestHoldSurvivesRefusedRenewals", "rlock.TestWaiterBacksOffWhileTheServerIsLoading",
		"rlock.TestServerOutOfMemoryStillRenewsAndReleases",
		"rlock.TestReplicaRefusesALockAtOnce",
		"redlock.TestFaultOfOneNodeChangesNothingForTheHolder",
	},
	chaos.ProcessStopped.Name: {
		"rlock.TestStoppedProcessFindsItsHoldInvalidAtTheFirstCheck",
		"rlock.TestWriteOfAHolderThatWasStoppedBeyondItsLeaseIsRefused",
		"rlock.TestStoppedWaiterDelaysAFairLockByLessThanTwentySeconds",
	},
	chaos.WritesPaused.Name: {
		"rlock.TestFairLockOutlivesImpatientCallers",
		"rlock.TestLockTakenLateByAnAbandonedCommandIsReleased",
	},
	chaos.HolderKilled.Name: {
		"rlock.TestHolderThatDiesAfterAHandOverBlocksOthersForOneLease",
		"rlock.TestProcessKilledWithItsGrantCostsAShortLease",
	},
	chaos.ProcessKilled.Name: {
		"rlock.TestKilledProcessDelaysAFairLockBySeconds",
		"rlock.TestFairLockIsAcquiredSoonAfterManyWaitersWereKilled",
		"rlock.TestReaderThatDiedDelaysAWriterByItsOwnLeaseOnly",
		"redlock.TestWaiterGetsTheLockOfAKilledProcessWhenItsLeaseEnds",
	},
	chaos.ServerStopped.Name: {
		"rlock.TestHungServerEndsTheHoldAtItsDeadline",
		"rlock.TestHungServerDelaysTryLockNoLongerThanItsWait",
		"rlock.TestHungServerDelaysUnlockForTheCommandTimeoutAndIsUnlockedLater",
		"rlock.TestAcquireExecutedAfterItsLeaseIsReleased",
		"rlock.TestRenewalExecutedAfterTheDeadlineIsUndone",
		"pubsub.TestHungServerIsNoticedAndSubscribedAgain",
	},
	chaos.ServerRestarted.Name: {
		"integration.TestServerThatRestartsWithItsDataHasOneHolder",
		"rlock.TestServerThatKeepsItsDataKeepsTheHoldThroughARestart",
		"rlock.TestWaiterGetsTheLockThatIsReleasedAfterARestart",
	},
	chaos.ServerEmptied.Name: {
		"rlock.TestServerThatRestartsEmptyEndsTheHoldAtTheNextRenewal",
		"rlock.TestWaiterGetsTheLockFromAServerThatRestartedEmpty",
	},
	chaos.KeyForbidden.Name: {"rlock.TestLockWhoseRenewalIsRejectedCostsNoOtherItsLease"},
	chaos.ReplicaStopped.Name: {
		"rlock.TestAcquisitionsThatWaitForAReplicaDelayNeitherRenewalsNorReleases",
		"integration.TestLockThatReachesNoReplicaIsReleasedAndNotAcquired",
	},
	chaos.EndpointMoved.Name: {
		"rlock.TestLocksFollowAnEndpointThatMoves",
		"multilock.TestMultiLockFollowsAnEndpointThatMoves",
		"redlock.TestNodeWhoseEndpointMovesVotesAgain",
	},
	chaos.IdleClosed.Name: {
		"rlock.TestFirstCommandAfterAnIdleConnectionWasClosedSucceeds",
		"rlock.TestForceUnlockAfterAnIdleConnectionWasClosed",
	},
	chaos.ScriptsFlushed.Name: {
		"rlock.TestScriptFlushBetweenOperationsIsNotNoticed",
		"rlock.TestScriptFlushDuringOperationsIsNotNoticed",
		"multilock.TestScriptsAreLoadedAgainAfterAServerForgotThem",
	},
	chaos.ClientsKilled.Name: {
		"rlock.TestKilledConnectionsDoNotLoseTheWakeUp", "rlock.TestHoldSurvivesAKilledConnection",
	},
	chaos.Flushed.Name: {"rlock.TestDeletedKeyEndsTheHoldAtTheNextRenewal"},
	chaos.ExpiryCut.Name: {
		"redlock.TestLossOnAMinorityChangesNothingAndOnAThirdNodeEndsTheHold",
	},
	chaos.HandedOver.Name: {"integration.TestWaitersGetTheirLocksAfterAFailover"},
	chaos.Failover.Name: {
		"rlock.TestLocksSurviveAFailover",
		"rlock.TestReplicatedLockSurvivesAFailoverAndTheNextOneIsMissingAReplica",
	},
	chaos.MasterKilled.Name: {
		"integration.TestLockThatWaitsForItsReplicasHasOneHolderAfterAFailover",
		"integration.TestWaitersGetTheirLocksAfterTheDeathOfTheMaster",
		"rlock.TestLockWhoseLeaseEndsDuringAFailoverIsLostAndGoesToTheNext",
		"multilock.TestPartsAreReleasedWhileTheirServerFailsOver",
	},
	chaos.SlotMoved.Name: {
		"integration.TestWaitersGetTheirLocksAfterTheirSlotHasMoved",
		"rlock.TestLockIsKeptWhileItsSlotMoves",
		"rlock.TestReleaseWhileTheWaitersSlotMovesIsNotMissed",
		"multilock.TestPlainLocksOfAMovingSlotAreTakenAndReleasedOneByOne",
	},
	chaos.MinorityStopped.Name: {
		"redlock.TestLockIsAcquiredIffThreeOfFiveNodesAreAlive",
		"redlock.TestRenewalsGoOnWhileTwoNodesHangThatStayIfTheyAreBackInTime",
	},
	chaos.MinorityEmptied.Name: {
		"redlock.TestRestartOfANodeThatForgetsDoesNotGiveTheLockToTwo",
		"redlock.TestHoldSurvivesThreeNodesThatRestartEmptyOneByOne",
		"redlock.TestNoTwoClientsOfTheModelHoldTheLockAtATime",
	},
}

// others has faults that chaos does not play, and the tests about them.
var others = []struct {
	fault string
	tests []string
}{
	{"the caller's context ends at any moment", []string{
		"rlock.TestCancelledContextEndsAnAttemptAnywhereAndLeavesNothing",
		"rlock.TestWaitTimeOutEndsAnAttemptAnywhereAndLeavesNothing",
		"rlock.TestThousandAcquisitionsCancelledInFlightLeaveNothing",
		"multilock.TestContextThatEndsEndsTheWaitAndLeavesNothing",
	}},
	{"the client is closed at any moment", []string{
		"rlock.TestCloseEndsAnAttemptAnywhereAndLeavesNothing",
		"redlock.TestCloseWhileUnlockWaitsForHungNodes",
	}},
	{"a dial that hangs", []string{
		"rlock.TestCallerReturnsInTimeWhileADialOfAnotherHangs",
		"rlock.TestCallerThatGivesUpDoesNotEndTheDialOfOthers",
	}},
	{"a server that hangs during a wait", []string{
		"rlock.TestWaiterOfAServerThatBeganToHangSaysThatRedisDoesNotReply",
	}},
	{"a server that accepts no more connections", []string{"rlock.TestFullServerIsTemporary"}},
	{"a server that looks like one node and has slots", []string{
		"rlock.TestServerThatLooksAtSlotsGetsOneRenewalForEach",
		"multilock.TestPlainLocksOnAServerThatIsShardedBehindAProxyAreTakenOneByOne",
	}},
	{"an application that uses all connections of the pool",
		[]string{"rlock.TestPoolUsedUpByTheApplicationCostsNoLock"}},
	{"a server out of memory", []string{
		"rlock.TestServerOutOfMemoryRefusesALockAtOnce",
		"lua.TestServerOutOfMemoryHandsAFairLockOver",
	}},
	{"a server that cannot save", []string{
		"rlock.TestServerThatCannotSaveRefusesALockAtOnce",
		"pubsub.TestChannelsAreGivenUpOnAServerThatCannotSave",
	}},
	{"an ACL that forbids a command, a key or a channel", []string{
		"rlock.TestWaiterGetsALockWhoseReleaseMayNotBeAnnounced",
		"rlock.TestWaiterThatMayNotSubscribeAsksByItself",
		"rlock.TestUserThatMayNotExpireKeysLeavesNoLockBehind",
		"rlock.TestListedPermissionsAreEnough",
	}},
	{"a password that changes", []string{
		"rlock.TestPasswordChangedWhileRunningIsRefusedUntilItIsChangedBack",
	}},
	{"replicas that lag or are away", []string{
		"rlock.TestReplicaThatBeginsToLagIsMissedAtTheNextAcquisition",
		"rlock.TestServerThatHangsDuringWaitDelaysNeitherTryLockNorClose",
		"integration.TestLockThatReachesNoReplicaIsReleasedAndNotAcquired",
	}},
	{"a key that something else overwrote or deleted", []string{
		"rlock.TestLockThatWasOverwrittenIsReportedAndLeftAlone",
		"rlock.TestUnlockOfADeletedKeySaysThatTheLockWasLost",
	}},
	{"a slot that no node serves", []string{"rlock.TestUnservedSlotIsWaitedFor"}},
	{"a logger that blocks", []string{"rlock.TestLoggerThatBlocksKeepsNoHoldBeyondItsDeadline"}},
	{"nodes of a RedLock that state an epoch or fsync policy falsely", []string{
		"redlock.TestRestartOfANodeThatForgetsGivesTheLockToTwoIfFsyncAlwaysIsStatedFalsely",
		"redlock.TestNodesThatWereEmptiedGiveTheLockToTwoUnlessTheyKeepAnEpoch",
	}},
	{"Redisson on the other side, waiting, holding, or killed", []string{
		"redisson.TestLocksOfRedissonAndOfHoldfast",
		"redisson.TestNoUpdateIsLostAmongProcessesOfBothSides",
	}},
	{"a waiter that leaves, is stopped, or dies just when it is granted a lock", []string{
		"rlock.TestSuccessorThatLeavesDuringTheReleasePassesTheLockOn",
		"rlock.TestWaiterThatLeavesDuringItsGrantPassesTheLockOn",
		"rlock.TestGrantToAStoppedProcessCostsAShortLease",
		"rlock.TestProcessKilledWithItsGrantCostsAShortLease",
	}},
	{"a waiter that listens on a replica, such as a master that was replaced",
		[]string{"integration.TestWaiterThatListensOnAReplicaIsGrantedNothing"}},
	{"a slow network before a MultiLock of Redisson's, with a wait and a lease: a breach", []string{
		"redisson.TestRedissonsMultiLockThatIsSlowHoldsNothing",
	}},
}

// breaches has the tests that show that a fault that makes servers forget really breaks a promise.
var breaches = map[string][]string{
	chaos.ServerEmptied.Name: {
		"integration.TestServerThatRestartsEmptyHasTwoHoldersAndCountsTokensAnew",
	},
	chaos.Flushed.Name: {
		"integration.TestServerThatIsEmptiedHasTwoHoldersAndCountsTokensAnew",
	},
	chaos.ExpiryCut.Name: {
		"integration.TestServerWhoseClockJumpsAheadHasTwoHoldersAndKeepsItsTokens",
	},
	chaos.Failover.Name:     {"integration.TestReplicaThatIsPromotedWithoutTheLockHasTwoHolders"},
	chaos.MasterKilled.Name: {"integration.TestReplicaThatIsPromotedWithoutTheLockHasTwoHolders"},
}

func TestTableInREADMEIsTrue(t *testing.T) {
	doctable.Require(t, "README.md", tableBegin, tableEnd, table(t),
		"go test ./integration -run TestTableInREADME")
}

// table returns the table. It requires that every test in it exists and that no cell is empty.
func table(t *testing.T) string {
	t.Helper()
	exist := tests(t)
	require.NotEmpty(t, exist)
	list := func(names []string) string {
		for _, name := range names {
			require.Contains(t, exist, name, "there is no such test")
		}
		return "`" + strings.Join(names, "`, `") + "`"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| fault | scenarios | %s | tests of its own |\n",
		strings.Join(history.Invariants, " | "))
	fmt.Fprintf(&b, "|---|---|%s---|\n", strings.Repeat("---|", len(history.Invariants)))
	played := map[string]bool{}
	for _, f := range faults() {
		played[f.Name] = true
		fmt.Fprintf(&b, "| %s | %s |", f.Name, strings.Join(scenarios(f.Name), ", "))
		for _, invariant := range history.Invariants {
			fmt.Fprintf(&b, " %s |", cell(f, invariant))
		}
		all := slices.Concat(own[f.Name], breaches[f.Name])
		require.NotEmpty(t, all, "no test is about %s", f.Name)
		fmt.Fprintf(&b, " %s |\n", list(all))
		if f.Forgets {
			require.NotEmpty(t, breaches[f.Name], "no test shows what %s breaches", f.Name)
		}
	}
	for _, named := range [][]string{keys(own), keys(breaches)} {
		for _, name := range named {
			require.True(t, played[name], "no scenario plays %q", name)
		}
	}
	b.WriteString("\n| fault that no scenario plays | tests |\n|---|---|\n")
	for _, other := range others {
		fmt.Fprintf(&b, "| %s | %s |\n", other.fault, list(other.tests))
	}
	return b.String()
}

// cell says when an invariant is judged in the runs with a fault.
func cell(f chaos.Fault, invariant string) string {
	tried := slices.ContainsFunc(chaos.Scenarios, func(s chaos.Scenario) bool {
		return s.Plays(f.Name) && s.Tries(invariant)
	})
	switch {
	case !tried && (invariant == history.WakeUps || invariant == history.Progress ||
		invariant == history.Answers):
		return "seldom" // there is little time far enough from faults
	case !tried:
		return "–"
	case f.Forgets && slices.Contains(forgotten, invariant) &&
		(!f.KeepsTokens || invariant != history.Fences):
		return "breach"
	case slices.Contains(after, invariant):
		return "after"
	default:
		return "always"
	}
}

// faults returns all faults that are played, in the order of the scenarios.
func faults() []chaos.Fault {
	var all []chaos.Fault
	for _, s := range chaos.Scenarios {
		for _, f := range s.Faults {
			if !slices.ContainsFunc(all, func(known chaos.Fault) bool {
				return known.Name == f.Name
			}) {
				all = append(all, f)
			}
		}
	}
	return all
}

// scenarios returns the names of the scenarios that play a fault.
func scenarios(fault string) []string {
	var names []string
	for _, s := range chaos.Scenarios {
		if s.Plays(fault) {
			names = append(names, s.Name)
		}
	}
	return names
}

func keys(m map[string][]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// tests returns all tests of the repository, such as rlock.TestX.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") {
				found[filepath.Base(filepath.Dir(path))+"."+function.Name.Name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	return found
}
