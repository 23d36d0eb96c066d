package history

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

func TestHoldsThatHaveAnOrderAreLinearizable(t *testing.T) {
	kept(t, Linearizable, held("a", 1, plain, 0, 10, 20, 25), held("b", 1, plain, 0, 24, 30, 31))
	kept(t, Linearizable, held("a", 1, plain, 0, 10, 20, 21),
		nested(held("a", 2, plain, 11, 12, 13, 14)), held("b", 1, plain, 0, 24, 30, 31))
	kept(t, Linearizable, held("a", 1, write, 0, 10, 20, 21),
		nested(held("a", 2, read, 11, 12, 30, 31)), held("b", 1, read, 0, 22, 40, 41))
}

// Neither hold is seen valid while the other one is, so exclusion cannot judge them.
func TestHoldAcquiredBeforeAnotherIsReleasedHasNoOrder(t *testing.T) {
	a := held("a", 1, plain, 0, 10, 20, 25)
	a[2].At = at(10) // trusted only when it was granted
	verdict := inBreach(t, Linearizable, 1, a, held("b", 1, plain, 0, 15, 30, 31))
	require.Empty(t, of(Exclusion, verdict.Breaches))
	b := of(Linearizable, verdict.Breaches)[0]
	require.Equal(t, `"lock": 1 operations have no order that a lock allows; at most 0 do, `+
		`and then not: b#1 plain "lock": acquired, when it is held by a#1 (1)`, b.Text)
	require.Equal(t, at(15), b.At)
	require.Len(t, b.Between, 1)
}

func TestWriterThatIsLetInAmongReadersHasNoOrder(t *testing.T) {
	a := held("a", 1, read, 0, 10, 20, 25)
	a[2].At = at(10)
	inBreach(t, Linearizable, 1, a, held("b", 1, write, 0, 15, 30, 31))
	kept(t, Linearizable, a, held("b", 1, read, 0, 15, 30, 31), held("c", 1, write, 0, 32, 40, 41))
}

func TestTokenThatDoesNotGrowHasNoOrder(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	later := func(number int64) []Event {
		return withToken(number, held("b", 1, fenced, 5, 23, 30, 31))
	}
	kept(t, Linearizable, first, later(6))
	inBreach(t, Linearizable, 1, first, later(5))
	inBreach(t, Linearizable, 1, first, later(4))
	kept(t, Linearizable, first, later(4), fault("flush", 15, 16))
	// Inner levels have the same token.
	kept(t, Linearizable, first, withToken(5, nested(held("a", 2, fenced, 11, 12, 13, 14))),
		later(6))
	inBreach(t, Linearizable, 1, first, withToken(6, nested(held("a", 2, fenced, 11, 12, 13, 14))),
		later(7))
}

func TestForgottenHoldMayBeAcquiredByAnotherOnlyThen(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 200, 201), held("b", 1, plain, 0, 150, 160, 161)
	kept(t, Linearizable, a, b, fault("flush", 100, 120))
	inBreach(t, Linearizable, 1, a, b, fault("flush", 160, 170))
	inBreach(t, Linearizable, 1, a, b, fault("cut", 100, 120))
}

func TestRefusalIsABreachIfNoOtherCanHaveHeldTheLock(t *testing.T) {
	refused := func(lock Lock, process string, from, to int) []Event {
		return []Event{waitingFor(0, asked(from, process, 1, lock)), did(to, process, 1, Refused)}
	}
	verdict := inBreach(t, Linearizable, 1, refused(plain, "b", 0, 9),
		held("a", 1, plain, 10, 20, 30, 31))
	require.Contains(t, verdict.Breaches[0].Text, "nobody else can have had it")
	kept(t, Linearizable, refused(plain, "b", 0, 10), held("a", 1, plain, 10, 20, 30, 31))
	kept(t, Linearizable, refused(plain, "b", 31, 40), held("a", 1, plain, 10, 20, 30, 31))
	inBreach(t, Linearizable, 1, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31))
	kept(t, Linearizable, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31),
		fault("cut", 35, 36))
}

func TestUndecidedHistoryIsABreach(t *testing.T) {
	require.Equal(t, porcupine.Unknown, piece{}.check(0))
	var verdict Verdict
	verdict.Judged = map[string]int{}
	h := story(t, []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)})
	h.linearizableWithin(0, bounds, &verdict)
	require.Len(t, verdict.Breaches, 1)
	require.Contains(t, verdict.Breaches[0].Text, "not decided")
}
