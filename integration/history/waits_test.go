package history

import "testing"

func TestACallThatOutlastsItsWaitIsABreach(t *testing.T) {
	call := waitingFor(300*ms, asked(0, "a", 1, plain))
	inBreach(t, Waits, 0, []Event{call, did(550, "a", 1, Unknown)})
	inBreach(t, Waits, 1, []Event{call, did(551, "a", 1, Unknown)})
	inBreach(t, Waits, 0, []Event{waitingFor(0, call), did(250, "a", 1, Unknown)})
	inBreach(t, Waits, 1, []Event{waitingFor(0, call), did(251, "a", 1, Unknown)})
}

func TestACallWithoutLimitMayLast(t *testing.T) {
	inBreach(t, Waits, 0, []Event{asked(0, "a", 1, plain), did(9000, "a", 1, Unknown)}, held("b", 1, plain, 0, 1, 8900, 8901),
		[]Event{waitingFor(0, asked(0, "c", 1, plain)), did(1, "c", 1, Failed)})
}

func TestTheTimeDuringWhichAProcessIsStoppedDoesNotCount(t *testing.T) {
	call := []Event{waitingFor(300*ms, asked(0, "a", 1, plain)), did(651, "a", 1, Unknown)}
	stop := func(process string) []Event {
		return []Event{{At: at(100), What: Stopped, Process: process}, {At: at(201), What: Resumed, Process: process}}
	}
	inBreach(t, Waits, 0, call, stop("a"))
	inBreach(t, Waits, 1, call, stop("b"))
}

func TestACallWithoutAnswerIsABreachUnlessItsProcessWasKilledOrIsStoppedStill(t *testing.T) {
	call := []Event{asked(0, "a", 1, plain)}
	other := held("b", 1, plain, 0, 1, 2, 3)
	other[0].Wait = 0
	inBreach(t, Waits, 1, call, other)
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Killed, Process: "a"}})
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Stopped, Process: "a"}})
	inBreach(t, Waits, 1, call, other, []Event{{At: at(5), What: Killed, Process: "b"}})
}

func TestAnUnlockWithoutAnswerIsABreach(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)[:4]
	hold[0].Wait = 0
	inBreach(t, Waits, 1, hold, freeAt(5000))
	inBreach(t, Waits, 0, hold, []Event{{At: at(5), What: Killed, Process: "a"}})
}
