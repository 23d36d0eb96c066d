package flight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestCallerAfterTheResultJoinsAnotherFlight(t *testing.T) {
	all := Group{}
	first, second := all.Join("k"), all.Join("k")
	require.Same(t, first, second)
	require.True(t, first.Wait(t.Context(), false))
	require.False(t, second.Wait(t.Context(), true), "the first has the turn")
	all.Land("k", first, lua.OnceRecord{Result: "r"})
	first.Pass()
	for range 20 { // both the result and the turn are ready
		require.False(t, second.Wait(t.Context(), false))
	}
	require.Equal(t, "r", second.Record().Result)

	third := all.Join("k")
	require.NotSame(t, first, third, "the result may have expired")
	all.Leave("k", first)
	all.Leave("k", second)
	require.Len(t, all.byKey, 1)
	all.Leave("k", third)
	require.Empty(t, all.byKey)
}
