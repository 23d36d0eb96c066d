package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// hindered is a fault that was near the call, but has nothing to do with it.
var hindered = fault("cut", 0, 1, "a")

func TestCallThatOutlastsItsWaitIsABreach(t *testing.T) {
	call := waitingFor(300*ms, asked(0, "a", 1, plain))
	inBreach(t, Waits, 0, []Event{call, did(550, "a", 1, Unknown)}, hindered)
	inBreach(t, Waits, 1, []Event{call, did(551, "a", 1, Unknown)}, hindered)
	inBreach(t, Waits, 0, []Event{waitingFor(0, call), did(250, "a", 1, Unknown)})
	inBreach(t, Waits, 1, []Event{waitingFor(0, call), did(251, "a", 1, Unknown)})
}

func TestWaitWithoutAFaultIsNotACommandLonger(t *testing.T) {
	call := waitingFor(300*ms, asked(0, "a", 1, plain))
	inBreach(t, Waits, 0, []Event{call, did(350, "a", 1, Refused)})
	inBreach(t, Waits, 1, []Event{call, did(351, "a", 1, Refused)})
	brief := bounds
	brief.Brief = 10 * ms
	late := func(after int) []Breach {
		return of(Waits, story(t, []Event{call, did(after, "a", 1, Refused)}).Judge(brief).Breaches)
	}
	require.Empty(t, late(310))
	require.Len(t, late(311), 1)
}

func TestEarlyRefusalIsABreachUnlessAFaultWasNear(t *testing.T) {
	refused := func(lock Lock, after int) []Event {
		return []Event{waitingFor(300*ms, asked(2000, "a", 1, lock)),
			did(2000+after, "a", 1, Refused)}
	}
	verdict := inBreach(t, Waits, 1, refused(plain, 279))
	require.Contains(t, of(Waits, verdict.Breaches)[0].Text,
		"refused after 279ms, before its wait of 300ms was over")
	inBreach(t, Waits, 0, refused(plain, 280))
	inBreach(t, Waits, 0, refused(Lock{"lock", Quorum}, 279))
	inBreach(t, Waits, 0, refused(plain, 279), fault("cut", 100, 800, "a"))
	inBreach(t, Waits, 1, refused(plain, 279), fault("cut", 100, 799, "a"))
	inBreach(t, Waits, 0, refused(plain, 279), []Event{{At: at(2279), What: Stopping}})
	inBreach(t, Waits, 1, refused(plain, 279), []Event{{At: at(2280), What: Stopping}})
	both := refused(plain, 279)
	both[0].Locks = append(both[0].Locks, Lock{"other", Plain})
	inBreach(t, Waits, 1, both)
	unlimited := refused(plain, 279)
	unlimited[0].Wait = 0
	inBreach(t, Waits, 1, []Event{unlimited[0], did(2251, "a", 1, Refused)})
	inBreach(t, Waits, 0, []Event{unlimited[0], did(2001, "a", 1, Refused)})
}

func TestUnlockThatTakesTooLongIsABreach(t *testing.T) {
	hold := func(gone int) []Event {
		return append(held("a", 1, plain, 0, 1, 2, 3)[:4], did(gone, "a", 1, Released))
	}
	verdict := inBreach(t, Waits, 1, hold(2+251))
	require.Contains(t, of(Waits, verdict.Breaches)[0].Text, "Unlock took 251ms")
	inBreach(t, Waits, 0, hold(2+250))
	inBreach(t, Waits, 0, hold(2+351),
		[]Event{{At: at(100), What: Stopped, Process: "a"},
			{At: at(201), What: Resumed, Process: "a"}})
	brief := bounds
	brief.Brief = 10 * ms
	require.Len(t, of(Waits, story(t, hold(2+211)).Judge(brief).Breaches), 1)
	require.Empty(t, of(Waits, story(t, hold(2+211), hindered).Judge(brief).Breaches))
	require.Len(t, of(Waits, story(t, hold(2+251), hindered).Judge(brief).Breaches), 1)
}

func TestCallWithoutLimitMayLast(t *testing.T) {
	inBreach(t, Waits, 0, []Event{asked(0, "a", 1, plain), did(9000, "a", 1, Unknown)},
		held("b", 1, plain, 0, 1, 8900, 8901),
		[]Event{waitingFor(0, asked(0, "c", 1, plain)), did(1, "c", 1, Failed)})
}

func TestTimeOfAStoppedProcessDoesNotCount(t *testing.T) {
	call := []Event{waitingFor(300*ms, asked(0, "a", 1, plain)), did(651, "a", 1, Unknown)}
	stop := func(process string) []Event {
		return []Event{{At: at(100), What: Stopped, Process: process},
			{At: at(201), What: Resumed, Process: process}}
	}
	inBreach(t, Waits, 0, call, stop("a"))
	inBreach(t, Waits, 1, call, stop("b"))
	inBreach(t, Waits, 0, call, fault(Standstill, 100, 201))
	inBreach(t, Waits, 1, call, fault("another fault", 100, 201))
}

func TestCallWithoutAnswerIsABreachUnlessItsProcessIsKilledOrStopped(t *testing.T) {
	call := []Event{asked(0, "a", 1, plain)}
	other := held("b", 1, plain, 0, 1, 2, 3)
	other[0].Wait = 0
	inBreach(t, Waits, 1, call, other)
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Killed, Process: "a"}})
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Stopped, Process: "a"}})
	inBreach(t, Waits, 1, call, other, []Event{{At: at(5), What: Killed, Process: "b"}})
}

func TestUnlockWithoutAnswerIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)[:4]
	hold[0].Wait = 0
	inBreach(t, Waits, 1, hold, freeAt(5000))
	inBreach(t, Waits, 0, hold, []Event{{At: at(5), What: Killed, Process: "a"}})
}

func TestFaultThatSparesWaitsIsNoExcuseForAnEarlyFailure(t *testing.T) {
	failed := func(what What, after int) []Event {
		return []Event{waitingFor(300*ms, asked(2000, "a", 1, plain)),
			did(2000+after, "a", 1, what)}
	}
	moved := func() []Event { return sparing(Waits, fault("moved", 1900, 2900)) }
	verdict := inBreach(t, Waits, 1, failed(Unknown, 279), moved())
	require.Contains(t, of(Waits, verdict.Breaches)[0].Text,
		"unknown after 279ms, before its wait of 300ms was over but moved: ")
	inBreach(t, Waits, 0, failed(Unknown, 280), moved())
	inBreach(t, Waits, 0, failed(Failed, 279), moved())
	inBreach(t, Waits, 0, failed(Unknown, 279), fault("moved", 1900, 2900))
	inBreach(t, Waits, 1, failed(Refused, 351), moved())
	inBreach(t, Waits, 0, failed(Refused, 351), fault("moved", 1900, 2900))
}
