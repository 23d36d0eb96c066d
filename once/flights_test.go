package once

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestCallerAfterTheResultJoinsAnotherFlight(t *testing.T) {
	all := flights{byKey: make(map[string]*flight)}
	first, second := all.join("k"), all.join("k")
	require.Same(t, first, second)
	require.True(t, first.wait(t.Context(), false))
	require.False(t, second.wait(t.Context(), true), "the first has the turn")
	all.land("k", first, lua.OnceRecord{Result: "r"})
	first.pass()
	for range 20 { // both the result and the turn are ready
		require.False(t, second.wait(t.Context(), false))
	}
	require.Equal(t, "r", second.record.Result)

	third := all.join("k")
	require.NotSame(t, first, third, "the result may have expired")
	all.leave("k", first)
	all.leave("k", second)
	require.Len(t, all.byKey, 1)
	all.leave("k", third)
	require.Empty(t, all.byKey)
}
