package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answered returns a call made at 2000 with a wait of three seconds, and its outcome.
func answered(lock Lock, at int, what What, text string) []Event {
	answer := did(at, "a", 1, what)
	answer.Error = text
	return []Event{waitingFor(3*time.Second, asked(2000, "a", 1, lock)), answer}
}

// unconfirmed returns a hold of a whose release at 2500 has an unknown outcome.
func unconfirmed(lock Lock) []Event {
	return append(held("a", 1, lock, 2000, 2010, 2500, 2501)[:4], did(2600, "a", 1, Unconfirmed))
}

func TestOutcomeIsUnknownOnlyNearAFault(t *testing.T) {
	for _, what := range []What{Unknown, Failed} {
		verdict := inBreach(t, Answers, 1, answered(plain, 2500, what, "time-out"))
		require.Contains(t, of(Answers, verdict.Breaches)[0].Text,
			string(what)+", although no fault was near: time-out")
		inBreach(t, Answers, 1, answered(plain, 2500, what, "time-out"),
			fault("cut", 100, 2400, "b"))
		inBreach(t, Answers, 0, answered(plain, 2500, what, "time-out"),
			fault("cut", 100, 800, "a"))
		inBreach(t, Answers, 1, answered(plain, 2500, what, "time-out"),
			fault("cut", 100, 799, "a"))
		inBreach(t, Answers, 0, answered(plain, 2500, what, "time-out"),
			settling(800, fault("cut", 100, 200)))
		inBreach(t, Answers, 0, answered(plain, 2500, what, "time-out"), fault("cut", 2500, 2600))
		inBreach(t, Answers, 1, answered(plain, 2500, what, "time-out"), fault("cut", 2501, 2600))
	}
	require.Positive(t, kept(t, Answers, answered(plain, 5000, Refused, "held"),
		held("b", 1, plain, 1000, 1001, 6000, 6001)).Judged[Answers])
}

func TestUnconfirmedReleaseIsABreachUnlessAFaultWasNear(t *testing.T) {
	inBreach(t, Answers, 1, unconfirmed(plain))
	inBreach(t, Answers, 0, unconfirmed(plain), fault("cut", 2550, 2600))
	inBreach(t, Answers, 1, unconfirmed(plain), fault("cut", 2601, 2700))
	inBreach(t, Answers, 0, unconfirmed(plain), []Event{{At: at(2600), What: Stopping}})
	inBreach(t, Answers, 1, unconfirmed(plain), []Event{{At: at(2601), What: Stopping}})
	inBreach(t, Answers, 0, held("a", 1, plain, 2000, 2010, 2500, 2501))
}

func TestCallsThatMayBeGivenUpNeedNoAnswer(t *testing.T) {
	unknown := func(change func(asked *Event)) []Event {
		events := answered(plain, 2100, Unknown, "time-out")
		change(&events[0])
		return events
	}
	inBreach(t, Answers, 0,
		answered(plain, 2500, Unknown, "the server did not answer: context canceled"))
	inBreach(t, Answers, 0, answered(Lock{"lock", Quorum}, 2500, Unknown, "no quorum"))
	inBreach(t, Answers, 0, unconfirmed(Lock{"lock", Quorum}))
	inBreach(t, Answers, 0, answered(plain, 2500, Unknown, "time-out"),
		[]Event{{At: at(2500), What: Stopping}})
	inBreach(t, Answers, 1, answered(plain, 2500, Unknown, "time-out"),
		[]Event{{At: at(2501), What: Stopping}})
	inBreach(t, Answers, 0, unknown(func(e *Event) { e.Wait = 249 * ms }))
	inBreach(t, Answers, 1, unknown(func(e *Event) { e.Wait = 250 * ms }))
	inBreach(t, Answers, 1, unknown(func(e *Event) { e.Wait = 0 }))
	// over before the reply
	inBreach(t, Answers, 0, unknown(func(e *Event) { e.Fixed, e.Lease = true, 49*ms }))
	inBreach(t, Answers, 1, unknown(func(e *Event) { e.Fixed, e.Lease = true, 50*ms }))
}

func TestWaitThatEndsDuringACommandIsABreachOnlyIfItIsTheRule(t *testing.T) {
	waits := func(unknown, refused int) [][]Event {
		var all [][]Event
		for i := range unknown + refused {
			what := Refused
			if i < unknown {
				what = Unknown
			}
			all = append(all, []Event{waitingFor(300*ms, asked(2000, "a", i+1, plain)),
				did(2280, "a", i+1, what)})
		}
		return all
	}
	verdict := inBreach(t, Answers, 1, waits(5, 8)...)
	require.Contains(t, of(Answers, verdict.Breaches)[0].Text,
		"like 4 others when their wait was over, of which 8 were refused")
	inBreach(t, Answers, 1, waits(5, 9)...)
	inBreach(t, Answers, 0, waits(5, 10)...)
	inBreach(t, Answers, 0, waits(4, 0)...)
	inBreach(t, Answers, 1,
		[]Event{waitingFor(300*ms, asked(2000, "a", 1, plain)), did(2279, "a", 1, Unknown)})
}

func TestCallInTheContextOfAHoldThatIsOverNeedsNoAnswer(t *testing.T) {
	inner := []Event{within(1, asked(20, "a", 2, plain)), did(100, "a", 2, Unknown)}
	outer := func(deadline int) []Event {
		events := lasting(held("a", 1, plain, 0, 10, 110, 111))
		events[1].Until = at(deadline)
		return events
	}
	inBreach(t, Answers, 0, outer(100), inner)
	inBreach(t, Answers, 1, outer(101), inner)
}
