package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWaiterThatIsNotWokenIsABreach(t *testing.T) {
	verdict := inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 72, 80, 81))
	b := of(WakeUps, verdict.Breaches)[0]
	require.Equal(t, at(21), b.At)
	require.Contains(t, b.Text, `b#1 plain "lock" waited for 51ms`)
	kept(t, WakeUps, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 71, 80, 81))
	// One that gives up waits as well; one that does not wait is not judged.
	gaveUp := []Event{waitingFor(85*ms, asked(15, "b", 1, plain)), did(100, "b", 1, Refused)}
	inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
	gaveUp[0].Wait = 0
	inBreach(t, WakeUps, 0, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
}

func TestAGapIsReportedOnce(t *testing.T) {
	inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 100, 110, 111), held("c", 1, plain, 16, 115, 120, 121))
	inBreach(t, WakeUps, 2, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 100, 110, 111), held("c", 1, plain, 16, 200, 210, 211))
}

func TestNobodyIsLateWhileSomebodyMayHaveTheLock(t *testing.T) {
	b := held("b", 1, plain, 15, 500, 510, 511)
	kept(t, WakeUps, b, held("a", 1, plain, 0, 10, 450, 451))
	// Until the lease of whoever was killed must be over, or got no answer.
	late := func(millis int) []Event { return held("b", 1, plain, 15, millis, millis+10, millis+11) }
	killed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted), {At: at(20), What: Killed, Process: "a"}}
	kept(t, WakeUps, killed, late(20+1250+50))
	inBreach(t, WakeUps, 1, killed, late(20+1250+51))
	unanswered := []Event{asked(0, "a", 1, plain), {At: at(20), What: Killed, Process: "a"}}
	kept(t, WakeUps, unanswered, late(20+1250+50))
	inBreach(t, WakeUps, 1, unanswered, late(20+1250+51))
	unknown := []Event{asked(0, "a", 1, plain), did(20, "a", 1, Unknown)}
	kept(t, WakeUps, unknown, late(20+1250+50))
	inBreach(t, WakeUps, 1, unknown, late(20+1250+51))
	lost := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted), did(20, "a", 1, Lost)}
	kept(t, WakeUps, lost, late(20+1250+50))
	inBreach(t, WakeUps, 1, lost, late(20+1250+51))
	doubtful := held("a", 1, plain, 0, 10, 15, 20)
	doubtful[4].What = Doubtful
	kept(t, WakeUps, doubtful, late(20+1250+50))
	inBreach(t, WakeUps, 1, doubtful, late(20+1250+51))
	fixed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)}
	kept(t, WakeUps, fixed, late(5000))
	fixed[0].Fixed = true
	kept(t, WakeUps, fixed, late(10+1050+50))
	inBreach(t, WakeUps, 1, fixed, late(10+1050+51))
}

func TestARefusedOneHoldsNothingUnlessItsAnswersWereHindered(t *testing.T) {
	refused := []Event{waitingFor(10*ms, asked(5, "c", 1, plain)), did(15, "c", 1, Refused)}
	a := held("a", 1, plain, 0, 10, 20, 21)
	b := held("b", 1, plain, 15, 500, 510, 511)
	inBreach(t, WakeUps, 1, a, refused, b)
	kept(t, WakeUps, a, refused, b, fault("cut", 6, 7, "c"))
}

func TestAFaultOfTheWaiterExcusesItForAWhile(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	inBreach(t, WakeUps, 1, a, b)
	kept(t, WakeUps, a, b, fault("cut", 30, 40, "b"))
	kept(t, WakeUps, a, b, fault("cut", 30, 40))
	inBreach(t, WakeUps, 1, a, b, fault("cut", 30, 40, "c"))
	late := held("b", 1, plain, 15, 40+1200+51, 1400, 1401)
	inBreach(t, WakeUps, 1, a, late, fault("cut", 30, 40, "b"))
}

func TestWhoeverWasHinderedMayHaveHadTheLockSinceItAsked(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	c := held("c", 1, plain, 16, 450, 460, 461)
	inBreach(t, WakeUps, 1, a, b, c)
	kept(t, WakeUps, a, b, c, fault("cut", 30, 440, "c"))
}

func TestAMultiLockKeepsWhatItHasWhileItWaitsForTheRest(t *testing.T) {
	both := held("c", 1, plain, 16, 450, 460, 461)
	both[0].Locks = []Lock{plain, {"other", Plain}}
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	other := held("a", 2, Lock{"other", Plain}, 0, 10, 440, 441)
	kept(t, WakeUps, a, b, both, other, []Event{{At: at(90_000), What: Free, Name: "other"}})
	inBreach(t, WakeUps, 1, a, both, held("a", 2, Lock{"other", Plain}, 0, 10, 300, 301))
}

func TestAHungWaiterInTheQueueOfAFairLockHoldsUpTheOthers(t *testing.T) {
	a, b := held("a", 1, fair, 0, 10, 20, 21), held("b", 1, fair, 15, 9000, 9010, 9011)
	hung := []Event{waitingFor(100*ms, asked(12, "c", 1, fair)), did(112, "c", 1, Unknown)}
	inBreach(t, WakeUps, 2, a, b, hung) // of both
	kept(t, WakeUps, a, b, hung, fault("cut", 50, 60, "c"))
}
