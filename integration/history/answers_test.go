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
