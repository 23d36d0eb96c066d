package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaiterThatIsNotWokenIsABreach(t *testing.T) {
	verdict := inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21),
		held("b", 1, plain, 15, 72, 80, 81))
	b := of(WakeUps, verdict.Breaches)[0]
	require.Equal(t, at(21), b.At)
	require.Contains(t, b.Text, `b#1 plain "lock" waited for 51ms`)
	kept(t, WakeUps, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 71, 80, 81))
	// A call that gives up has waited, too; one without wait is not judged.
	gaveUp := []Event{waitingFor(85*ms, asked(15, "b", 1, plain)), did(100, "b", 1, Refused)}
	inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
	gaveUp[0].Wait = 0
	inBreach(t, WakeUps, 0, held("a", 1, plain, 0, 10, 20, 21), gaveUp)
}

func TestGapIsReportedOnce(t *testing.T) {
	inBreach(t, WakeUps, 1, held("a", 1, plain, 0, 10, 20, 21),
		held("b", 1, plain, 15, 100, 110, 111), held("c", 1, plain, 16, 115, 120, 121))
	inBreach(t, WakeUps, 2, held("a", 1, plain, 0, 10, 20, 21),
		held("b", 1, plain, 15, 100, 110, 111), held("c", 1, plain, 16, 200, 210, 211))
}

// excused fails unless no waiter is late, and none could have been seen to be.
func excused(t *testing.T, events ...[]Event) {
	t.Helper()
	require.Zero(t, inBreach(t, WakeUps, 0, events...).Judged[WakeUps])
}

func TestWaiterIsJudgedIfItWouldHaveSeenALockThatIsNotHandedOver(t *testing.T) {
	judged := func(events ...[]Event) int {
		return inBreach(t, WakeUps, 0, events...).Judged[WakeUps]
	}
	a := held("a", 1, plain, 0, 10, 20, 21)
	b := func(wait time.Duration) []Event {
		events := held("b", 1, plain, 15, 22, 30, 31)
		events[0].Wait = wait
		return events
	}
	require.Equal(t, 1, judged(a, b(-1)))
	require.Equal(t, 1, judged(a, b(56*ms+1))) // ends a wake-up after a's hold
	require.Zero(t, judged(a, b(56*ms)))
	require.Zero(t, judged(a)) // no call waits
	require.Zero(t, judged(b(-1)))
	require.Zero(t, judged(held("a", 1, plain, 0, 10, 14, 15), b(-1))) // gone before
	// Nothing can be judged.
	require.Zero(t, judged(a, b(-1), fault("cut", 15, 16, "b")))
	require.Equal(t, 1, judged(a, b(-1), fault("cut", 15, 16, "c")))
	require.Zero(t, judged(a, b(-1), []Event{asked(5, "c", 1, plain), did(6, "c", 1, Unknown)}))
	// A hold of another in between proves something.
	require.Equal(t, 2, judged(a, held("b", 1, plain, 15, 50, 51, 52),
		held("c", 1, plain, 16, 22, 30, 31)))
}

func TestNoWaiterIsLateWhileAnotherMayHoldTheLock(t *testing.T) {
	b := held("b", 1, plain, 15, 500, 510, 511)
	kept(t, WakeUps, b, held("a", 1, plain, 0, 10, 450, 451))
	// Until the lease of a process that was killed, or got no reply, must be over.
	late := func(millis int) []Event {
		return held("b", 1, plain, 15, millis, millis+10, millis+11)
	}
	killed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted),
		{At: at(20), What: Killed, Process: "a"}}
	excused(t, killed, late(20+1250+50))
	inBreach(t, WakeUps, 1, killed, late(20+1250+51))
	unanswered := []Event{asked(0, "a", 1, plain), {At: at(20), What: Killed, Process: "a"}}
	excused(t, unanswered, late(20+1250+50))
	inBreach(t, WakeUps, 1, unanswered, late(20+1250+51))
	unknown := []Event{asked(0, "a", 1, plain), did(20, "a", 1, Unknown)}
	excused(t, unknown, late(20+1250+50))
	inBreach(t, WakeUps, 1, unknown, late(20+1250+51))
	lost := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted), did(20, "a", 1, Lost)}
	excused(t, lost, late(20+1250+50))
	inBreach(t, WakeUps, 1, lost, late(20+1250+51))
	unconfirmed := held("a", 1, plain, 0, 10, 15, 20)
	unconfirmed[4].What = Unconfirmed
	excused(t, unconfirmed, late(20+1250+50))
	inBreach(t, WakeUps, 1, unconfirmed, late(20+1250+51))
	fixed := []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)}
	excused(t, fixed, late(5000))
	fixed[0].Fixed = true
	excused(t, fixed, late(10+1050+50))
	inBreach(t, WakeUps, 1, fixed, late(10+1050+51))
}

func TestRefusedCallHoldsNothingUnlessItsRepliesWereHindered(t *testing.T) {
	refused := []Event{waitingFor(10*ms, asked(5, "c", 1, plain)), did(15, "c", 1, Refused)}
	a := held("a", 1, plain, 0, 10, 20, 21)
	b := held("b", 1, plain, 15, 500, 510, 511)
	inBreach(t, WakeUps, 1, a, refused, b)
	excused(t, a, refused, b, fault("cut", 6, 7, "c"))
}

func TestFaultOfTheWaiterExcusesItForAWhile(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	inBreach(t, WakeUps, 1, a, b)
	soon := held("b", 1, plain, 15, 250, 260, 261)
	inBreach(t, WakeUps, 1, a, soon)
	excused(t, a, soon, fault("cut", 30, 40, "b"))
	excused(t, a, soon, fault("cut", 30, 40))
	inBreach(t, WakeUps, 1, a, b, fault("cut", 30, 40, "c"))
	// Until the fault has settled, and for one more command.
	late := func(millis int) []Event { return held("b", 1, plain, 15, millis, 1400, 1401) }
	excused(t, a, late(40+200+50), fault("cut", 30, 40, "b"))
	inBreach(t, WakeUps, 1, a, late(40+200+51), fault("cut", 30, 40, "b"))
	excused(t, a, late(70+200+50), settling(70, fault("cut", 30, 40, "b")))
	inBreach(t, WakeUps, 1, a, late(70+200+51), settling(70, fault("cut", 30, 40, "b")))
}

func TestHinderedCallMayHaveHeldTheLockSinceItsRequest(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	c := held("c", 1, plain, 16, 450, 460, 461)
	inBreach(t, WakeUps, 1, a, b, c)
	excused(t, a, b, c, fault("cut", 30, 440, "c"))
}

func TestMultiLockKeepsItsPartsWhileItWaitsForTheRest(t *testing.T) {
	both := held("c", 1, plain, 16, 450, 460, 461)
	both[0].Locks = []Lock{plain, {"other", Plain}}
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 500, 510, 511)
	other := held("a", 2, Lock{"other", Plain}, 0, 10, 440, 441)
	inBreach(t, WakeUps, 0, a, b, both, other)
	inBreach(t, WakeUps, 1, a, both, held("a", 2, Lock{"other", Plain}, 0, 10, 300, 301))
}

// handedOver fails unless locks that are handed over breach an invariant that many times.
func handedOver(t *testing.T, invariant string, times int, events ...[]Event) {
	t.Helper()
	b := bounds
	b.HandsOver = true
	require.Len(t, of(invariant, story(t, events...).Judge(b).Breaches), times)
}

func TestHungWaiterMayBeGrantedALockAfterItHasLeft(t *testing.T) {
	a := held("a", 1, plain, 0, 10, 300, 301)
	b := func(millis int) []Event { return held("b", 1, plain, 150, millis, 9010, 9011) }
	c := []Event{waitingFor(50*ms, asked(12, "c", 1, plain)), did(62, "c", 1, Refused)}
	cut := fault("cut", 60, 400, "c")
	handedOver(t, WakeUps, 0, a, b(400+200+2*1000+50+50), c, cut)
	handedOver(t, WakeUps, 1, a, b(400+200+2*1000+50+51), c, cut)
	// It had a command's time to announce that it left.
	handedOver(t, WakeUps, 0, a, b(2000), c, fault("cut", 262, 400, "c"))
	handedOver(t, WakeUps, 1, a, b(2000), c, fault("cut", 263, 400, "c"))
	handedOver(t, WakeUps, 1, a, b(2000), c)
	// A call without wait is granted nothing, nor is any call without hand-overs.
	noWait := []Event{waitingFor(0, asked(12, "c", 1, plain)), did(62, "c", 1, Refused)}
	handedOver(t, WakeUps, 1, a, b(3000), noWait, cut)
	inBreach(t, WakeUps, 1, a, b(2000), c, cut)
}

func TestHungWaiterInTheQueueOfAFairLockDelaysTheOthers(t *testing.T) {
	a, b := held("a", 1, fair, 0, 10, 20, 21), held("b", 1, fair, 15, 9000, 9010, 9011)
	hung := []Event{waitingFor(100*ms, asked(12, "c", 1, fair)), did(112, "c", 1, Unknown)}
	inBreach(t, WakeUps, 2, a, b, hung) // of both waiters
	excused(t, a, b, hung, fault("cut", 50, 60, "c"))
}

func TestReadersWaitForAHungWriterForALeaseOnly(t *testing.T) {
	a := held("a", 1, read, 0, 10, 20, 21)
	b := func(millis int) []Event { return held("b", 1, read, 15, millis, 9010, 9011) }
	hung := []Event{waitingFor(100*ms, asked(12, "c", 1, write)), did(112, "c", 1, Refused)}
	cut := fault("cut", 50, 60, "c")
	excused(t, a, b(112+1000+200+50+50), hung, cut)
	inBreach(t, WakeUps, 1, a, b(112+1000+200+50+51), hung, cut)
}

func TestHoldThatIsNotReleasedEndsWithTheLastLeaseOrRenewal(t *testing.T) {
	short := func(events []Event) []Event {
		events[0].Fixed, events[0].Lease = true, 100*ms
		return events
	}
	late := func(millis int) []Event { return held("b", 1, plain, 15, millis, 9010, 9011) }
	left := short([]Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)})
	excused(t, left, late(10+150+50))
	inBreach(t, WakeUps, 1, left, late(10+150+51))
	inBreach(t, WakeUps, 1, left, late(10+150+51), fault("cut", 11, 12, "a"))
	excused(t, left, late(10+150+51), fault("cut", 9, 12, "a"))
	// A renewed level keeps it longer, as does an inner one acquired later.
	outer := held("a", 1, plain, 0, 10, 30, 40)
	inner := nested(short([]Event{asked(20, "a", 2, plain), did(21, "a", 2, Granted)}))
	excused(t, outer, inner, late(40+1050+50))
	inBreach(t, WakeUps, 1, outer, inner, late(40+1050+51))
	excused(t, outer[:3], inner, late(5000)) // not released
	inBreach(t, WakeUps, 1, left, inner, late(21+150+51))
	excused(t, left, inner, late(21+150+50))
}

func TestCallHinderedWhenGrantedHasHeldTheLockSinceTheFaultAtTheEarliest(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 600, 610, 611)
	c := held("c", 1, plain, 16, 580, 590, 591)
	c[0].Wait = 0 // otherwise it would be a witness itself
	// a command earlier it would have got the reply
	excused(t, a, b, c, fault("cut", 271, 272, "c"))
	inBreach(t, WakeUps, 1, a, b, c, fault("cut", 272, 273, "c"))
}

func TestKilledWaiterMayHaveBeenGrantedTheLockForItsLease(t *testing.T) {
	a := held("a", 1, plain, 0, 10, 100, 101)
	killed := func(asking Event) []Event {
		return []Event{asking,
			{At: at(20), What: Killed, Process: "c"}}
	}
	c := killed(waitingFor(5000*ms, asked(12, "c", 1, plain)))
	over := 20 + 1000 + 200 + 50
	b := func(millis int) []Event { return held("b", 1, plain, 15, millis, 9010, 9011) }
	handedOver(t, WakeUps, 0, a, c, b(over+50))
	handedOver(t, WakeUps, 1, a, c, b(over+51))
	c[0].Lease = 300 * ms
	handedOver(t, WakeUps, 1, a, c, b(over-700+51))
	// A waiter that left just before its death is granted nothing any more.
	left := append(killed(waitingFor(5*ms, asked(12, "c", 1, plain))), did(17, "c", 1, Refused))
	handedOver(t, WakeUps, 0, a, left, b(20+200+2*1000+50+50))
	handedOver(t, WakeUps, 1, a, left, b(20+200+2*1000+50+51))
}

func TestHinderedCallHasHeldNothingBeforeTheFault(t *testing.T) {
	for _, lock := range []Lock{plain, fair} {
		a, b := held("a", 1, lock, 0, 10, 200, 201), held("b", 1, lock, 15, 420, 9010, 9011)
		c := func(killed int) []Event {
			return []Event{waitingFor(5000*ms, asked(12, "c", 1, lock)),
				{At: at(killed), What: Killed, Process: "c"}}
		}
		inBreach(t, WakeUps, 0, a, b, c(240))
		inBreach(t, WakeUps, 1, a, b, c(600)) // a command earlier it would have got the reply
	}
}

func TestFirstInTheQueueOfAFairLockWaitsForNoDeadWaiter(t *testing.T) {
	a, b := held("a", 1, fair, 0, 10, 20, 21), held("b", 1, fair, 15, 3000, 9010, 9011)
	dead := []Event{waitingFor(5000*ms, asked(12, "c", 1, fair)),
		{At: at(30), What: Killed, Process: "c"}}
	dead[0].Lease = 100 * ms
	excused(t, a, b, dead)
	excused(t, a, b, dead, queue(40, 41, "x", "b"))
	verdict := inBreach(t, WakeUps, 1, a, b, dead, queue(40, 41, "x", "b"),
		queue(2000, 2001, "b", "x"))
	require.Equal(t, at(2001), of(WakeUps, verdict.Breaches)[0].At)
	inBreach(t, WakeUps, 0, a, b, dead, queue(2000, 2950, "b", "x"))
	inBreach(t, WakeUps, 0, a, b, dead, queue(13, 14, "b")) // at another time
	inBreach(t, WakeUps, 0, a, b, dead, queue(2000, 2001, "b"), fault("cut", 2000, 3000, "b"))
}

func TestWritersDoNotWaitForADeadWriter(t *testing.T) {
	a := held("a", 1, write, 0, 10, 20, 21)
	dead := []Event{waitingFor(5000*ms, asked(12, "c", 1, write)),
		{At: at(30), What: Killed, Process: "c"}}
	dead[0].Lease = 100 * ms
	b := func(lock Lock, millis int) []Event { return held("b", 1, lock, 15, millis, 9010, 9011) }
	over := 30 + 100 + 200 + 50
	inBreach(t, WakeUps, 0, a, dead, b(write, over+50))
	inBreach(t, WakeUps, 1, a, dead, b(write, over+51))
	excused(t, a, dead, b(read, over+51))
}
