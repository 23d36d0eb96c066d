package chaos_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
	"holdfast/integration/history"
)

// settings returns how long scenarios are played, from which seeds, and the only hand-over, or "".
func settings(t *testing.T, otherwise time.Duration) (length time.Duration, seeds []uint64,
	only chaos.HandOver) {
	t.Helper()
	length, err := time.ParseDuration(cmp.Or(os.Getenv("HOLDFAST_CHAOS_TIME"), otherwise.String()))
	require.NoError(t, err)
	switch given := os.Getenv("HOLDFAST_CHAOS_SEED"); given {
	case "":
		seeds = []uint64{1}
	case "new":
		seeds = []uint64{1, rand.Uint64()}
	default:
		seed, err := strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{seed}
	}
	if given := os.Getenv("HOLDFAST_CHAOS_HANDOVER"); given != "" {
		only, err = chaos.HandOverNamed(given)
		require.NoError(t, err)
	}
	return length, seeds, only
}

// chosen returns the scenarios that can be played, or the one that HOLDFAST_CHAOS_SCENARIO names,
// if it is one of these.
func chosen(t *testing.T, playable func(*chaos.Scenario) bool) (some []chaos.Scenario) {
	t.Helper()
	only := os.Getenv("HOLDFAST_CHAOS_SCENARIO")
	var names []string
	for _, scenario := range chaos.Scenarios {
		names = append(names, scenario.Name)
		if playable(&scenario) && (only == "" || only == scenario.Name) {
			some = append(some, scenario)
		}
	}
	require.Contains(t, append(names, ""), only, "HOLDFAST_CHAOS_SCENARIO")
	return some
}

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
