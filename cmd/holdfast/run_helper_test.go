//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each run starts both, and to initialize the rest of the program takes longer than what they do.
func TestStartAndGuardInitializeLittle(t *testing.T) {
	t.Parallel()
	trace := []string{"GODEBUG=inittrace=1"}
	require.Contains(t, runWith(t, trace, "version").stderr, "init holdfast/rlock ")
	for helper, status := range map[string]int{"start": 126, "guard": 1} {
		o := runWith(t, trace, helper)
		require.Equal(t, status, o.status)
		require.Contains(t, o.stderr, "init os ")
		for _, other := range []string{"net", "regexp", "github.com/alecthomas/kong",
			"holdfast/rlock"} {
			require.NotContains(t, o.stderr, "init "+other+" ")
		}
	}
}
