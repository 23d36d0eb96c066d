//go:build !race

package chaos_test

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
)

// TestLocksKeepTheirPromisesInVirtualTime plays all scenarios that need no real server or process,
// always with the same seed. They share an hour of virtual time by their costs.
// HOLDFAST_CHAOS_TIME=10h plays for longer, and the other variables are those of
// TestLocksKeepTheirPromisesWhateverFails.
func TestLocksKeepTheirPromisesInVirtualTime(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(600)) // each script of the server makes garbage
	const usual = time.Hour
	length, seeds, only := settings(t, usual)
	scenarios := chosen(t, func(s *chaos.Scenario) bool { return s.CanBeVirtual() })
	if len(scenarios) == 0 {
		t.Log("this scenario is played on real servers only")
		return
	}
	shares := 0.0
	for i, s := range scenarios {
		scenarios[i] = s.Virtual() // tally knows faults by their twins
		shares += s.Share()
	}
	tried := &tally{counts: map[string]int{}}
	begin := time.Now()
	for _, seed := range seeds {
		for _, s := range scenarios {
			s.HandOver = cmp.Or(only, chaos.DrawnHandOver(&s, seed))
			each := time.Duration(float64(length) * s.Share() / shares / float64(len(seeds)))
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed), func(t *testing.T) {
				happened, verdict := chaos.Play(t, &s, seed, each)
				chaos.ReportVirtual(t, &s, seed, each, happened, verdict)
				tried.add(&s, happened, verdict)
			})
		}
	}
	t.Logf("%v of virtual time in %v, with %v of CPU", length, time.Since(begin), usedCPU(t))
	if length >= usual {
		tried.check(t, scenarios)
	}
}

const (
	// mistake names the broken lock that this test binary was built with.
	mistake = "HOLDFAST_CHAOS_MISTAKE"
	// foundWithin is the longest CPU time until its mistake is found.
	foundWithin = time.Minute
)

// TestMistakeIsFoundInVirtualTime plays a broken lock, seed by seed, until its mistake is found. It
// is for TestBrokenLocksAreFoundInVirtualTime.
func TestMistakeIsFoundInVirtualTime(t *testing.T) {
	for _, b := range broken {
		if b.mistake != os.Getenv(mistake) {
			continue
		}
		scenario := b.scenario()
		scenario.Pace = 100 * time.Millisecond
		for seed := uint64(1); ; seed++ {
			_, verdict := chaos.Play(t, &scenario, seed, 30*time.Second)
			if b.isFound(t, verdict) {
				t.Logf("found with seed %d after %v of CPU", seed, usedCPU(t))
				return
			}
			require.Less(t, usedCPU(t), foundWithin, "not found: one of %v must be breached", b.found)
		}
	}
}

// usedCPU returns the CPU time of this process.
func usedCPU(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
