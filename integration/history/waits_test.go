package history

import (
	"slices"
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
	both := waitingFor(0, call)
	both.Locks = append(slices.Clone(both.Locks), Lock{"other", Plain})
	inBreach(t, Waits, 0, []Event{both, did(450, "a", 1, Unknown)})
	inBreach(t, Waits, 1, []Event{both, did(451, "a", 1, Unknown)})
}

func TestEarlyRefusalIsABreachUnlessAFaultWasNear(t *testing.T) {
	refused := func(after int) []Event {
		return []Event{waitingFor(300*ms, asked(2000, "a", 1, plain)),
			did(2000+after, "a", 1, Refused)}
	}
	verdict := inBreach(t, Waits, 1, refused(279))
	require.Contains(t, of(Waits, verdict.Breaches)[0].Text,
		"refused after 279ms, before its wait of 300ms was over")
	inBreach(t, Waits, 0, refused(280))
	inBreach(t, Waits, 0, refused(279), fault("cut", 100, 800, "a"))
	inBreach(t, Waits, 1, refused(279), fault("cut", 100, 799, "a"))
	both := refused(279)
	both[0].Locks = append(both[0].Locks, Lock{"other", Plain})
	inBreach(t, Waits, 1, both)
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

func TestCallWithoutAnswerIsABreachUnlessItsProcessIsKilledOrStopped(t *testing.T) {
	call := []Event{asked(0, "a", 1, plain)}
	other := held("b", 1, plain, 0, 1, 2, 3)
	other[0].Wait = 0
	inBreach(t, Waits, 1, call, other)
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Killed, Process: "a"}})
	inBreach(t, Waits, 0, call, other, []Event{{At: at(5), What: Stopped, Process: "a"}})
	inBreach(t, Waits, 1, call, other, []Event{{At: at(5), What: Killed, Process: "b"}})
}
