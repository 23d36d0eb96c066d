package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPerfectHistoryPasses(t *testing.T) {
	v := judge(scenes(false), perfect(), perfectSections)
	require.Empty(t, v.faults)
	require.True(t, v.ok())
	require.Equal(t, "demo: 53 sections, 0 overlaps, counter 53, max wake-up 2.0 ms, takeover 0.85 s", v.String())
	require.LessOrEqual(t, len(v.String()), 80)
}

func TestLostUpdateFails(t *testing.T) {
	v := judge(scenes(false), perfect(), perfectSections-1)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "0 overlaps, counter 52 instead of 53")
}

func TestOverlapFails(t *testing.T) {
	h := change(perfect(), "hugo", entered, func(e *event) { e.Found = "finn" })
	v := judge(scenes(false), h, perfectSections)
	require.Empty(t, v.faults)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "53 sections, 1 overlaps")
}

func TestBrokenPromiseFails(t *testing.T) {
	at := func(at time.Duration) func(*event) { return func(e *event) { e.At = at } }
	for fault, h := range map[string][]event{
		"counter: ada got into 0 sections instead of 12":             without(without(perfect(), "ada", entered), "ada", leaving),
		"counter: ben re-entered to level 2 3 times instead of 4":    change(perfect(), "ben", nested, func(e *event) { e.Count = 1 }),
		"watchdog: eve did not hold the lock for 4 leases":           change(perfect(), "eve", leaving, at(3999*ms)),
		"watchdog: finn did not wait until eve let go":               change(perfect(), "finn", waiting, at(4011*ms)),
		"takeover: gina was not killed while holding the lock":       without(perfect(), "gina", killed),
		"takeover: hugo did not take over the lock of gina":          without(perfect(), "hugo", entered),
		"passed on 2.05 s after SIGKILL instead of within its lease": change(perfect(), "hugo", entered, at(4100*ms)),
		"timeout: jack did not give up":                              without(perfect(), "jack", gaveUp),
		"timeout: jack gave up after 1.46 s instead of 1.5 s":        change(perfect(), "jack", gaveUp, at(1499*ms)),
		"timeout: jack gave up after 2.56 s instead of 1.5 s":        change(perfect(), "jack", gaveUp, at(2600*ms)),
		`timeout: jack heard that "somebody"`:                        change(perfect(), "jack", gaveUp, func(e *event) { e.Owner = "somebody" }),
		"holds the lock for another 29 s":                            change(perfect(), "jack", gaveUp, func(e *event) { e.TTL = 29 * time.Second }),
		"holds the lock for another 0 s":                             change(perfect(), "jack", gaveUp, func(e *event) { e.TTL = 0 }),
		"a waiter was woken only 1.2 s after the unlock":             change(change(perfect(), "finn", leaving, at(5300*ms)), "finn", entered, at(5210*ms)),
		"watchdog: eve: no route to host":                            append(perfect(), event{At: time.Minute, Kind: failed, Process: "eve", Lock: "watchdog", Error: "no route to host"}),
		"watchdog: finn: exit status 2\npanic: something":            append(perfect(), event{At: time.Minute, Kind: ended, Process: "finn", Lock: "watchdog", Error: "exit status 2\npanic: something"}),
	} {
		t.Run(fault, func(t *testing.T) {
			v := judge(scenes(false), h, perfectSections)
			require.False(t, v.ok())
			require.Len(t, v.faults, 1)
			require.Contains(t, v.faults[0], fault)
			require.Contains(t, v.String(), ", 1 fault")
		})
	}
}
