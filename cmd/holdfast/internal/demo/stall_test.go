package demo

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallOfAProcessIsMeasuredEvenIfItHasJustEnded(t *testing.T) {
	t.Parallel()
	due := time.Now().Add(-time.Minute)
	var s stalls
	require.Zero(t, s.longest(), "not begun")
	s.due.Store(&due)
	require.GreaterOrEqual(t, s.longest(), time.Minute)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.watch(ended)
	require.GreaterOrEqual(t, s.longest(), time.Minute)
}

// stalled has a process report that it stood still.
func stalled(h []event) []event {
	return change(h, "hugo", leaving, func(e *event) { e.Stall = stillness })
}

func TestFaultIsNotJudgedIfTheMachineStoodStill(t *testing.T) {
	t.Parallel()
	fail := func() []event { return without(perfect(), "jack", gaveUp, 1) }
	require.False(t, judge(played(), fail(), perfectSections).stoodStill())
	require.True(t, judge(played(), stalled(fail()), perfectSections).stoodStill())
	require.False(t, judge(played(), stalled(perfect()), perfectSections).stoodStill(),
		"nothing went wrong")
}

func TestNoStallExcusesTwoValidHolds(t *testing.T) {
	t.Parallel()
	// hugo gets in at 4400 ms.
	late := func(until time.Duration) []event {
		h := without(without(perfect(), "gina", killed, 1), "gina", ended, 1)
		return stalled(append(h, event{At: 4500 * ms, Kind: leaving, Process: "gina",
			Lock: "watchdog", Until: until}))
	}
	for name, c := range map[string]struct {
		history []event
		excused bool
	}{
		"it outstayed its hold":                {late(4400 * ms), true},
		"its hold was valid":                   {late(4401 * ms), false},
		"it does not say until when":           {late(0), false},
		"a marker that one who outstayed left": {marked(late(4400*ms), "hugo", "gina"), true},
		"a marker that nobody explains":        {marked(stalled(perfect()), "liam", "kate"), false},
		"a marker at another lock":             {marked(late(4400*ms), "liam", "gina"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(played(), c.history, perfectSections)
			require.NotZero(t, v.overlaps)
			require.Equal(t, c.excused, v.stoodStill())
		})
	}
}

// marked has a process find the name of another when it enters.
func marked(h []event, process, found string) []event {
	return change(h, process, entered, func(e *event) { e.Found = []string{found} })
}
