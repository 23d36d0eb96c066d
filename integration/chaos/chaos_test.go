package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
)

// atOnce is how many scenarios are played at a time. Most of their time they wait.
const atOnce = 2

// TestLocksKeepTheirPromisesWhateverFails plays all scenarios, half of the time with a seed that is always the same and half
// with one that is new.
//
// HOLDFAST_CHAOS_TIME is how long that takes in all, about; HOLDFAST_CHAOS_SEED is the only seed then, and
// HOLDFAST_CHAOS_SCENARIO the only scenario.
func TestLocksKeepTheirPromisesWhateverFails(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("HOLDFAST_CHAOS_TIME"), "24s"))
	require.NoError(t, err)
	seeds := []uint64{1, rand.Uint64()}
	if given := os.Getenv("HOLDFAST_CHAOS_SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{seed}
	}
	scenarios := chosen(t, os.Getenv("HOLDFAST_CHAOS_SCENARIO"))
	runs := len(seeds) * len(scenarios)
	each := length * time.Duration(min(atOnce, runs)) / time.Duration(runs)
	places := make(chan struct{}, atOnce)
	for _, seed := range seeds {
		for _, scenario := range scenarios {
			t.Run(fmt.Sprintf("%s, seed %d", scenario.Name, seed), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				t.Cleanup(func() { <-places })
				history, verdict := chaos.Run(t, &scenario, seed, each)
				chaos.Report(t, &scenario, seed, each, history, verdict)
			})
		}
	}
}

// chosen are the scenarios with a name; all if there is none.
func chosen(t *testing.T, name string) []chaos.Scenario {
	t.Helper()
	if name == "" {
		return chaos.Scenarios
	}
	var names []string
	for _, scenario := range chaos.Scenarios {
		if scenario.Name == name {
			return []chaos.Scenario{scenario}
		}
		names = append(names, scenario.Name)
	}
	require.FailNow(t, "no such scenario", "HOLDFAST_CHAOS_SCENARIO=%s: want one of %q", name, names)
	return nil
}
