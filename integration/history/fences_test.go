package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLaterAcquisitionWithoutALargerTokenIsABreach(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	kept(t, Fences, first, withToken(6, held("b", 1, fenced, 22, 23, 30, 31)))
	inBreach(t, Fences, 1, first, withToken(4, held("b", 1, fenced, 22, 23, 30, 31)))
	inBreach(t, Fences, 1, first, withToken(5, held("b", 1, fenced, 22, 23, 30, 31)))
	inBreach(t, Fences, 1, first, withToken(7, held("b", 1, fenced, 22, 23, 30, 31)),
		withToken(6, held("c", 1, fenced, 32, 33, 40, 41)))
}

func TestTokensMayBeginAnewWhenTheServersForget(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	second := withToken(1, held("b", 1, fenced, 102, 103, 110, 111))
	third := withToken(2, held("c", 1, fenced, 112, 113, 120, 121))
	verdict := kept(t, Fences, first, second, third, fault("flush", 50, 51))
	require.Len(t, of(Fences, verdict.Expected), 2)
	require.Contains(t, verdict.Expected[0].Text, "after flush")
	// Tokens may restart only once.
	inBreach(t, Fences, 1, first, second, withToken(1, held("c", 1, fenced, 112, 113, 120, 121)),
		fault("flush", 50, 51))
	inBreach(t, Fences, 2, first, second, third, fault("flush", 200, 201))
	// They must not if tokens are kept.
	cut := fault("flush", 50, 51)
	cut[0].KeepsTokens = true
	verdict = inBreach(t, Fences, 2, first, second, third, cut)
	require.Len(t, of(Linearizable, verdict.Breaches), 1)
	inBreach(t, Linearizable, 1, first, withToken(1, held("b", 1, fenced, 49, 60, 70, 71)), cut)
	kept(t, Fences, withToken(5, held("a", 1, fenced, 4, 5, 60, 61)),
		withToken(6, nested(held("a", 2, fenced, 55, 56, 57, 58))), cut)
	// The same token may be issued at the same time.
	kept(t, Fences, withToken(5, held("a", 1, fenced, 0, 10, 20, 21)), fault("flush", 15, 22),
		withToken(5, held("b", 1, fenced, 1, 30, 40, 41)))
}
