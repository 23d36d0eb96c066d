//go:build redis

package chaos_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/integration/chaos"
	"holdfast/integration/history"
)

// atOnce is how many scenarios are played at once. They mostly wait.
const atOnce = 2

// takes is how often a scenario is played at most, until no Sentinel fails over by itself.
const takes = 3

// usual are the scenarios of make test. The others would take a minute more: make chaos plays all,
// and GitHub does so for each change.
var usual = []string{"network", "processes and servers", "cluster", "failover",
	"servers that forget", "quorum"}

// TestLocksKeepTheirPromisesWhateverFails plays the usual scenarios, always with the same seed.
//
// With HOLDFAST_CHAOS_TIME it plays all, for about that long. HOLDFAST_CHAOS_SEED is another seed,
// and "new" draws one to play beside the known one. HOLDFAST_CHAOS_SCENARIO is the only scenario,
// and HOLDFAST_CHAOS_HANDOVER (all, mixed, local or none) the only hand-over.
func TestLocksKeepTheirPromisesWhateverFails(t *testing.T) {
	length, seeds, only := settings(t, 10*time.Second)
	all := os.Getenv("HOLDFAST_CHAOS_TIME") != "" || os.Getenv("HOLDFAST_CHAOS_SCENARIO") != ""
	scenarios := chosen(t, func(s *chaos.Scenario) bool {
		return !s.OnlyVirtual && (all || slices.Contains(usual, s.Name))
	})
	if len(scenarios) == 0 {
		t.Log("this scenario is played in virtual time only")
		return
	}
	runs := len(seeds) * len(scenarios)
	each := length * time.Duration(min(atOnce, runs)) / time.Duration(runs)
	// Some show nothing in less, also if all others are short.
	lasting := func(s chaos.Scenario) time.Duration { return max(each, s.Shortest) }
	playing := make(chan struct{}, atOnce)
	tried := &tally{counts: map[string]int{}}
	if length >= longEnough*time.Duration(len(scenarios)) {
		t.Cleanup(func() { // runs after all scenarios
			tried.check(t, scenarios)
			if only == "" && runs >= len(chaos.HandOvers) {
				tried.checkHandOvers(t)
			}
		})
	}
	for _, seed := range seeds {
		for _, scenario := range scenarios {
			scenario.HandOver = cmp.Or(only, chaos.DrawnHandOver(&scenario, seed))
			t.Run(fmt.Sprintf("%s, seed %d", scenario.Name, seed), func(t *testing.T) {
				t.Parallel()
				playing <- struct{}{}
				t.Cleanup(func() { <-playing })
				each := lasting(scenario)
				for range takes {
					happened, verdict := chaos.Run(t, &scenario, seed, each)
					chaos.Report(t, &scenario, seed, each, happened, verdict)
					if tried.add(&scenario, happened, verdict) {
						return
					}
				}
			})
		}
	}
}

// Faults may begin and end before a process has reached its servers.
func TestRunThatEndsAtOnceHasNoBreach(t *testing.T) {
	t.Parallel()
	scenario := chaos.Scenario{
		Name: "over at once", Topology: integration.Single, Kinds: []history.Kind{history.Plain},
		Faults: []chaos.Fault{chaos.ServerEmptied}, Peace: time.Millisecond,
	}
	for seed := range uint64(3) {
		_, verdict := chaos.Run(t, &scenario, seed, time.Millisecond)
		require.Empty(t, verdict.Breaches)
	}
}

// longEnough is how long a run takes, for each scenario, in which every fault happens and every
// invariant is judged.
const longEnough = 12 * time.Second
