package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	given := os.Getenv("HOLDFAST_CHAOS_TIME")
	length, err := time.ParseDuration(cmp.Or(given, "10s"))
	require.NoError(t, err)
	seeds := []uint64{1}
	switch given := os.Getenv("HOLDFAST_CHAOS_SEED"); given {
	case "":
	case "new":
		seeds = append(seeds, rand.Uint64())
	default:
		seed, err := strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{seed}
	}
	scenarios := chosen(t, os.Getenv("HOLDFAST_CHAOS_SCENARIO"), given != "")
	var only chaos.HandOver
	if given := os.Getenv("HOLDFAST_CHAOS_HANDOVER"); given != "" {
		only, err = chaos.HandOverNamed(given)
		require.NoError(t, err)
	}
	runs := len(seeds) * len(scenarios)
	each := length * time.Duration(min(atOnce, runs)) / time.Duration(runs)
	// Some show nothing in less, also if all others are short.
	lasting := func(s chaos.Scenario) time.Duration { return max(each, s.Shortest) }
	playing := make(chan struct{}, atOnce)
	tried := &tally{counts: map[string]int{}}
	if length >= longEnough*time.Duration(len(chaos.Scenarios)) {
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

// tally counts how often each fault was played in a scenario, each invariant was judged, and each
// hand-over was used.
type tally struct {
	mu     sync.Mutex
	counts map[string]int // guarded by mu
}

// add counts a run, and reports whether its judgements count, too: a failover that was not planned
// excuses nearly everything.
func (c *tally) add(s *chaos.Scenario, happened *history.History, verdict history.Verdict) bool {
	scenario := s.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts["hand-over: "+string(s.HandOver)]++
	for _, fault := range happened.Faults {
		c.counts[scenario+": "+fault.Fault]++
		if fault.Fault == chaos.Unplanned {
			return false
		}
	}
	for invariant, cases := range verdict.Judged {
		c.counts[scenario+": "+invariant] += cases
	}
	return true
}

// check requires that nothing was left out: what is not tried is not proven.
func (c *tally) check(t *testing.T, scenarios []chaos.Scenario) {
	t.Helper()
	for _, s := range scenarios {
		for _, fault := range s.Faults {
			assert.NotZero(t, c.counts[s.Name+": "+fault.Name], "%s was never played in %q",
				fault.Name, s.Name)
		}
		for _, invariant := range history.Invariants {
			if s.Tries(invariant) {
				assert.NotZero(t, c.counts[s.Name+": "+invariant], "%s was never tried in %q",
					invariant, s.Name)
			}
		}
	}
}

// checkHandOvers requires a run with each hand-over.
func (c *tally) checkHandOvers(t *testing.T) {
	t.Helper()
	for _, h := range chaos.HandOvers {
		assert.NotZero(t, c.counts["hand-over: "+string(h)], "no run with hand-over %q", h)
	}
}

// chosen returns the scenario with a name. Without one it returns all, or the usual.
func chosen(t *testing.T, name string, all bool) (some []chaos.Scenario) {
	t.Helper()
	if name == "" && all {
		return chaos.Scenarios
	}
	if name == "" {
		for _, name := range usual {
			some = append(some, chaos.Named(name))
		}
		return some
	}
	var names []string
	for _, scenario := range chaos.Scenarios {
		if scenario.Name == name {
			return []chaos.Scenario{scenario}
		}
		names = append(names, scenario.Name)
	}
	require.FailNow(t, "no such scenario", "HOLDFAST_CHAOS_SCENARIO=%s: want one of %q", name,
		names)
	return nil
}
