package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPerfectHistoryPasses(t *testing.T) {
	v := judge(played(), perfect(), perfectSections)
	require.Empty(t, v.faults)
	require.True(t, v.ok())
	require.Equal(t,
		"demo: 78 sections, 0 overlaps, counter 78, max wake-up 2 ms, takeover 0.85 s",
		v.String())
	require.LessOrEqual(t, len(v.String()), 80)
}

func TestLostUpdateFails(t *testing.T) {
	v := judge(played(), perfect(), perfectSections-1)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "0 overlaps, counter 77 instead of 78")
}

func TestOverlapFails(t *testing.T) {
	h := change(perfect(), "hugo", entered, func(e *event) { e.Found = []string{"finn"} })
	v := judge(played(), h, perfectSections)
	require.Empty(t, v.faults)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "78 sections, 1 overlaps")
}

func TestBrokenPromiseFails(t *testing.T) {
	at := func(at time.Duration) func(*event) { return func(e *event) { e.At = at } }
	for fault, h := range map[string][]event{
		"counter: nested 15 times instead of 16": without(perfect(), "ben", nested, 1),
		"counter: left 47 times instead of 48":   without(perfect(), "ada", left, 1),
		`watchdog: "gina killed" is missing in: gina entered, hugo waiting, gina killed`: change(
			perfect(), "gina", killed, func(e *event) { e.Process = "nobody" }),
		"watchdog: gina entered, hugo waiting, gina killed: 2.99 s instead of 3 s to 10 s": change(
			perfect(), "gina", killed, at(2990*ms)),
		"watchdog: gina killed, hugo entered: 2.05 s instead of 0 ms to 2 s": after(
			perfect(), "hugo", 4000*ms, func(e *event) { e.At += 1200 * ms }),
		"watchdog: jack waiting, jack gave-up: 1.46 s instead of 1.5 s to 2.5 s": change(
			perfect(), "jack", gaveUp, at(1499*ms)),
		"watchdog: jack waiting, jack gave-up: 2.56 s instead of 1.5 s to 2.5 s": change(
			perfect(), "jack", gaveUp, at(2600*ms)),
		`watchdog: jack heard of holder "another", 0.9 s`: change(
			perfect(), "jack", gaveUp, func(e *event) { e.Owner = "another" }),
		`watchdog: jack heard of holder "client of gina:1", 1.1 s`: change(
			perfect(), "jack", gaveUp, func(e *event) { e.TTL = 1100 * ms }),
		`queue: mia heard of holder "client of kate:1", 0 ms`: change(
			perfect(), "mia", gaveUp, func(e *event) { e.TTL = 0 }),
		"a waiter was woken only 1.2 s after the unlock": after(
			perfect(), "noah", 5801*ms, func(e *event) { e.At += 1198 * ms }),
		"queue: noah got in before liam, who was queued already": change(
			perfect(), "noah", entered, at(2001*ms)),
		"queue: noah got in before paul, who was queued already": change(
			change(perfect(), "paul", entered, at(6200*ms)), "paul", leaving, at(6300*ms)),
		"queue: noah leaving, paul entered: 6.01 s instead of 0 ms to 6 s": after(after(perfect(),
			"paul", 5000*ms, func(e *event) { e.At += 3110 * ms }), "noah", 5000*ms,
			func(e *event) { e.At += 3110 * ms }),
		`queue: "liam queued" is missing`: without(perfect(), "liam", queued, 9),
		`readwrite: "uma waiting" is missing`: change(
			perfect(), "uma", waiting, at(105*ms)),
		`readwrite: "tess leaving" is missing`: change(
			perfect(), "tess", leaving, at(1503*ms)),
		"redlock: node5 died, vera leaving: 2 s instead of 2 s to 10 s": change(
			perfect(), "node5", died, at(401*ms)),
		`redlock: "xena entered" is missing in: node1 died, xena entered`: change(
			perfect(), "node1", died, at(3397*ms)),
		"transfer: left 7 times instead of 8": without(perfect(), "zoe", left, 1),
		"watchdog: hugo: no route to host": append(perfect(),
			event{At: time.Minute, Kind: failed, Process: "hugo", Lock: "watchdog",
				Error: "no route to host"}),
		"watchdog: hugo: exit status 2\npanic: something": append(perfect(),
			event{At: time.Minute, Kind: ended, Process: "hugo", Lock: "watchdog",
				Error: "exit status 2\npanic: something"}),
	} {
		t.Run(fault, func(t *testing.T) {
			v := judge(played(), h, perfectSections)
			require.False(t, v.ok())
			require.Contains(t, strings.Join(v.faults, "\n"), fault)
			require.Contains(t, v.String(), ", faults: ")
		})
	}
}

func TestDurationsHaveSignificantDigitsOnly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                      "0 ms",
		949 * time.Microsecond: "0.9 ms",
		99 * ms:                "99 ms",
		100 * ms:               "0.1 s",
		996 * ms:               "1 s",
		1500 * ms:              "1.5 s",
		28_461 * ms:            "28.46 s",
		30_000 * ms:            "30 s",
	} {
		require.Equal(t, want, brief(d), "%v", d)
	}
}
