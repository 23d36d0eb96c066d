//go:build !race

package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestPerfectLockIsNeverInBreach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([][]Lock{simNames, {{"fair", Fair}}, {{"fenced", Fenced}},
			{{"rw", Read}, {"rw", Write}}}).Draw(t, "names")
		faults := rapid.SliceOfDistinct(rapid.SampledFrom(
			[]string{"kill", "stop", "cut", "forget"}), rapid.ID[string]).Draw(t, "faults")
		s := newSimulator(rapid.Uint64().Draw(t, "seed"), 10*time.Second, names...)
		s.fixed = rapid.Bool().Draw(t, "some leases are explicit")
		s.long = rapid.Bool().Draw(t, "some stay long")
		s.multi = rapid.Bool().Draw(t, "some acquire several")
		h, err := New(s.run(rapid.IntRange(1, 4).Draw(t, "processes"),
			rapid.IntRange(1, 3).Draw(t, "workers"), faults))
		require.NoError(t, err)
		for _, b := range h.Judge(simBounds).Breaches {
			t.Errorf("%v at %v", b, b.At.Sub(h.Start))
		}
	})
}

// Each defect is one that a lock has had. Within one run the check made for it must see it.
func TestBrokenLockIsInBreach(t *testing.T) {
	t.Parallel()
	for defect, c := range map[string]struct {
		invariant string
		names     []Lock
		faults    []string
		workers   int // of each of three processes
	}{
		"no exclusion":           {Exclusion, simNames, nil, 1},
		"no deadline":            {Exclusion, simNames, []string{"stop", "cut"}, 1},
		"release of any hold":    {Exclusion, []Lock{{"plain", Plain}}, []string{"cut", "stop"}, 1},
		"tokens stand still":     {Fences, []Lock{{"fenced", Fenced}}, nil, 1},
		"last come first served": {Fairness, []Lock{{"fair", Fair}}, nil, 1},
		"barging":                {Fairness, []Lock{{"fair", Fair}}, nil, 1},
		"no wake-up":             {WakeUps, []Lock{{"plain", Plain}}, nil, 1},
		"waits too long":         {Waits, []Lock{{"plain", Plain}}, nil, 3},
		"gives up early":         {Waits, []Lock{{"plain", Plain}}, nil, 3},
		"slow release":           {Waits, simNames, nil, 1},
		"watchdog sleeps":        {Kept, simNames, nil, 1},
		"loses an answer":        {Answers, simNames, nil, 1},
		"refuses a free lock":    {Linearizable, simNames, nil, 1},
		"never free":             {Remains, simNames, nil, 1},
	} {
		t.Run(defect, func(t *testing.T) {
			s := newSimulator(7, 20*time.Second, c.names...)
			s.defect, s.fixed, s.long = defect, true, c.invariant == Kept
			h, err := New(s.run(3, c.workers, c.faults))
			require.NoError(t, err)
			verdict := h.Judge(simBounds)
			found := map[string]int{}
			for _, b := range verdict.Breaches {
				found[b.Invariant]++
			}
			t.Logf("%d operations, breaches %v", len(h.Acquisitions), found)
			require.Positive(t, found[c.invariant], "%v", verdict.Breaches)
		})
	}
}

func TestEachInvariantIsJudgedInAnOrdinaryRun(t *testing.T) {
	t.Parallel()
	h, err := New(newSimulator(3, 20*time.Second, simNames...).run(4, 2, nil))
	require.NoError(t, err)
	verdict := h.Judge(simBounds)
	require.Empty(t, verdict.Breaches)
	for _, invariant := range Invariants {
		require.Positive(t, verdict.Judged[invariant], invariant)
	}
	t.Log(verdict.Judged)
}

func TestOverlapBecauseTheServersForgotIsOnlyExpected(t *testing.T) {
	t.Parallel()
	s := newSimulator(5, 60*time.Second, Lock{"plain", Plain}, Lock{"fenced", Fenced})
	h, err := New(s.run(4, 2, []string{"forget"}))
	require.NoError(t, err)
	verdict := h.Judge(simBounds)
	require.Empty(t, verdict.Breaches)
	found := map[string]int{}
	for _, b := range verdict.Expected {
		found[b.Invariant]++
	}
	require.Positive(t, found[Exclusion])
	require.Positive(t, found[Fences])

	// The same without a record of the fault.
	for i := range h.Events {
		h.Events[i].Forgets = false
	}
	h, err = New(h.Events)
	require.NoError(t, err)
	verdict = h.Judge(simBounds)
	require.Empty(t, verdict.Expected)
	for _, b := range verdict.Breaches {
		found[b.Invariant]--
	}
	require.Zero(t, found[Exclusion])
	require.LessOrEqual(t, found[Fences], 0)
	require.Negative(t, found[Linearizable])
}

// Two minutes of fifteen workers are judged in seconds, also on a lock that is never idle.
// Processor time counts: the machine may be busy with other things.
func TestLongHistoryIsJudgedInSeconds(t *testing.T) {
	for _, names := range [][]Lock{{{"plain", Plain}}, {{"fenced", Fenced}}, {{"fair", Fair}},
		{{"rw", Read}, {"rw", Read}, {"rw", Write}}} {
		s := newSimulator(11, 120*time.Second, names...)
		s.fixed = true
		h, err := New(s.run(5, 3, []string{"kill", "stop", "cut", "forget"}))
		require.NoError(t, err)
		began := processorTime(t)
		verdict := h.Judge(simBounds)
		took := processorTime(t) - began
		t.Logf("%s: %d operations judged in %v: %v", names[0].Name, len(h.Acquisitions), took,
			verdict.Judged)
		require.Empty(t, verdict.Breaches)
		// with the race detector; without it takes a second or less
		require.Less(t, took, 30*time.Second)
	}
}

func TestPictureOfALongHistoryHasItsLastOperations(t *testing.T) {
	t.Parallel()
	var events [][]Event
	for i := range maxOperations {
		events = append(events, held("a", i+1, plain, 10*i, 10*i+1, 10*i+5, 10*i+6))
	}
	page := draw(t, events...)
	require.Contains(t, page, inPage(t, `a#4000 plain "lock": acquired`))
	require.Contains(t, page, inPage(t, `a#2001 plain "lock": acquired`))
	require.NotContains(t, page, inPage(t, `a#1000 plain "lock": acquired`))
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
