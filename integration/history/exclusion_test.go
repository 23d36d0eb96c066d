package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoOwnersWithValidHoldsAreABreach(t *testing.T) {
	verdict := inBreach(t, Exclusion, 1, held("a", 1, plain, 0, 10, 30, 31),
		held("b", 1, plain, 0, 29, 40, 41))
	b := of(Exclusion, verdict.Breaches)[0]
	require.Equal(t, at(29), b.At)
	require.Len(t, b.Between, 2)
	require.Equal(t, `exclusion: "lock": a#1 plain "lock" and b#1 plain "lock" are both valid `+
		`for at least 1ms`, b.String())
}

func TestHoldsThatFollowEachOtherAreNoBreach(t *testing.T) {
	kept(t, Exclusion, held("a", 1, plain, 0, 10, 30, 33), held("b", 1, plain, 0, 31, 40, 41))
}

func TestTwoReadersAreNoBreachButAWriterAmongThemIs(t *testing.T) {
	kept(t, Exclusion, held("a", 1, read, 0, 10, 30, 31), held("b", 1, read, 0, 20, 40, 41),
		held("c", 1, write, 0, 42, 50, 51))
	inBreach(t, Exclusion, 1, held("a", 1, read, 0, 10, 30, 31), held("b", 1, write, 0, 20, 40, 41))
	inBreach(t, Exclusion, 1, held("a", 1, write, 0, 10, 30, 31), held("b", 1, read, 0, 20, 40, 41))
	inBreach(t, Exclusion, 2, held("a", 1, read, 0, 10, 50, 51), held("b", 1, read, 0, 20, 40, 41),
		held("c", 1, write, 5, 30, 35, 36))
}

func TestLevelsOfOneOwnerAreNoBreachAndOneBeyondTheOutermostCounts(t *testing.T) {
	levels := [][]Event{held("a", 1, plain, 0, 10, 30, 31),
		nested(held("a", 2, plain, 12, 13, 50, 51))}
	kept(t, Exclusion, append(levels, held("b", 1, plain, 0, 52, 60, 61))...)
	inBreach(t, Exclusion, 1, append(levels, held("b", 1, plain, 0, 45, 60, 61))...)
	// not nested
	inBreach(t, Exclusion, 1, held("a", 1, plain, 0, 10, 30, 31),
		held("a", 2, plain, 12, 13, 20, 21))
}

func TestOverlapAfterTheServersForgotIsExpectedUntilItMustBeNoticed(t *testing.T) {
	a := func(releasing int) []Event {
		return append(held("a", 1, plain, 0, 10, releasing, releasing+1)[:4],
			did(releasing+1, "a", 1, NotHeld))
	}
	b := held("b", 1, plain, 0, 150, 160, 161)
	verdict := kept(t, Exclusion, a(1100), b, fault("flush", 100, 120))
	require.Len(t, of(Exclusion, verdict.Expected), 1)
	require.Contains(t, verdict.Expected[0].Text, "after flush")

	inBreach(t, Exclusion, 1, a(1100), b, fault("cut", 100, 120))
	inBreach(t, Exclusion, 1, a(1171), b, fault("flush", 100, 120)) // a lease and the slack later
	inBreach(t, Exclusion, 1, a(1100), b, fault("flush", 151, 160)) // too late to be the reason
	inBreach(t, Exclusion, 1, held("a", 1, plain, 101, 110, 170, 171), b, fault("flush", 50, 100))
}
