package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallOfAProcessIsMeasuredEvenIfItHasJustEnded(t *testing.T) {
	t.Parallel()
	s := stalls{due: time.Now().Add(-time.Minute)}
	require.GreaterOrEqual(t, s.longest(), time.Minute)
	s.due = time.Now().Add(time.Hour)
	require.GreaterOrEqual(t, s.longest(), time.Minute)
	require.Zero(t, new(stalls).longest(), "not begun")
}

// stalled has a process report that it stood still.
func stalled(h []event) []event {
	return change(h, "eve", leaving, func(e *event) { e.Stall = stillness })
}

func TestFaultIsNotJudgedIfTheMachineStoodStill(t *testing.T) {
	t.Parallel()
	fail := func() []event { return without(perfect(), "jack", gaveUp) }
	require.False(t, judge(scenes(false), fail(), perfectSections).stoodStill())
	require.True(t, judge(scenes(false), stalled(fail()), perfectSections).stoodStill())
	require.False(t, judge(scenes(false), stalled(perfect()), perfectSections).stoodStill(),
		"nothing went wrong")
}

func TestNoStallExcusesTwoValidHolds(t *testing.T) {
	t.Parallel()
	// gina's lease is over at 2900 ms.
	late := func(until time.Duration) []event {
		h := without(without(perfect(), "gina", killed), "gina", ended)
		return stalled(append(h, event{At: 3 * time.Second, Kind: leaving, Process: "gina",
			Lock: "takeover", Until: until}))
	}
	for name, c := range map[string]struct {
		history []event
		excused bool
	}{
		"it outstayed its hold":                {late(2900 * ms), true},
		"its hold was valid":                   {late(2901 * ms), false},
		"it does not say until when":           {late(0), false},
		"a marker that one who outstayed left": {marked(late(2900*ms), "hugo", "gina"), true},
		"a marker that nobody explains":        {marked(stalled(perfect()), "finn", "eve"), false},
		"a marker at another lock":             {marked(late(2900*ms), "finn", "gina"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(scenes(false), c.history, perfectSections)
			require.NotZero(t, v.overlaps)
			require.Equal(t, c.excused, v.stoodStill())
		})
	}
}

// marked has a process find the name of another when it enters.
func marked(h []event, process, found string) []event {
	return change(h, process, entered, func(e *event) { e.Found = found })
}
