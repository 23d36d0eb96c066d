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
	require.Equal(t,
		"demo: 81 sections, 0 overlaps, counter 81, max wake-up 2.0 ms, takeover 0.85 s",
		v.String())
	require.LessOrEqual(t, len(v.String()), 80)
}

func TestLostUpdateFails(t *testing.T) {
	v := judge(scenes(false), perfect(), perfectSections-1)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "0 overlaps, counter 80 instead of 81")
}

func TestOverlapFails(t *testing.T) {
	h := change(perfect(), "hugo", entered, func(e *event) { e.Found = "finn" })
	v := judge(scenes(false), h, perfectSections)
	require.Empty(t, v.faults)
	require.False(t, v.ok())
	require.Contains(t, v.String(), "81 sections, 1 overlaps")
}

func TestBrokenPromiseFails(t *testing.T) {
	at := func(at time.Duration) func(*event) { return func(e *event) { e.At = at } }
	for fault, h := range map[string][]event{
		"counter: ada got into 0 sections instead of 12": without(
			without(perfect(), "ada", entered), "ada", leaving),
		"counter: ben re-entered to level 2 3 times instead of 4": change(
			perfect(), "ben", nested, func(e *event) { e.Count = 1 }),
		"watchdog: eve did not hold the lock for 4 leases": change(
			perfect(), "eve", leaving, at(3999*ms)),
		"watchdog: finn did not wait until eve let go": change(
			perfect(), "finn", waiting, at(4011*ms)),
		"takeover: gina was not killed while holding the lock": without(
			perfect(), "gina", killed),
		"takeover: hugo did not take over the lock of gina": without(
			perfect(), "hugo", entered),
		"passed on 2.05 s after SIGKILL instead of within its lease": change(
			perfect(), "hugo", entered, at(4100*ms)),
		"timeout: jack did not give up": without(
			perfect(), "jack", gaveUp),
		"timeout: jack gave up after 1.46 s instead of 1.5 s": change(
			perfect(), "jack", gaveUp, at(1499*ms)),
		"timeout: jack gave up after 2.56 s instead of 1.5 s": change(
			perfect(), "jack", gaveUp, at(2600*ms)),
		`timeout: jack heard that "another"`: change(
			perfect(), "jack", gaveUp, func(e *event) { e.Owner = "another" }),
		"holds the lock for another 29 s": change(
			perfect(), "jack", gaveUp, func(e *event) { e.TTL = 29 * time.Second }),
		"holds the lock for another 0 s": change(
			perfect(), "jack", gaveUp, func(e *event) { e.TTL = 0 }),
		"a waiter was woken only 1.2 s after the unlock": change(
			change(perfect(), "finn", leaving, at(5300*ms)), "finn", entered, at(5210*ms)),
		"queue: noah got in before liam, who was queued already": change(
			perfect(), "noah", entered, at(2001*ms)),
		"queue: noah got in before paul, who was queued already": change(
			change(perfect(), "paul", entered, at(6200*ms)), "paul", leaving, at(6300*ms)),
		"queue: noah got in 1 times instead of 2": after(
			perfect(), "noah", 2800*ms, func(e *event) { e.Kind = left }),
		"queue: mia was to be queued and then gave up": change(
			perfect(), "mia", gaveUp, func(e *event) { e.Kind = killed }),
		"queue: olga was to be queued and then killed": change(
			change(perfect(), "olga", killed, func(e *event) { e.Kind = gaveUp }), "paul", entered,
			at(2602*ms)),
		"queue: olga got in before it was killed": change(change(perfect(),
			"olga", killed, at(2660*ms)), "olga", ended, func(e *event) {
			e.Kind, e.At = entered, 2650*ms
		}),
		"queue: liam was to be queued and then entered": without(perfect(), "liam", queued),
		"queue: olga was passed over after 6.01 s instead of 5 s": after(after(perfect(),
			"paul", 5000*ms, func(e *event) { e.At += 3110 * ms }), "noah", 5000*ms,
			func(e *event) { e.At += 3110 * ms }),
		"readwrite: [quinn rosa] did not read together": change(
			change(perfect(), "rosa", entered, at(601*ms)), "rosa", waiting, at(90*ms)),
		"readwrite: [sam tess uma] did not read together": change(
			perfect(), "sam", leaving, at(1501*ms)),
		"readwrite: wim did not wait and then write": without(
			perfect(), "wim", queued),
		"readwrite: uma did not wait for wim": change(
			perfect(), "uma", waiting, at(105*ms)),
		"transfer: zoe made 3 transfers instead of 4": change(
			perfect(), "zoe", left, func(e *event) { e.Kind = unnested }),
		"transfer: yuri found 2 in both accounts together instead of 0": change(
			perfect(), "yuri", leaving, func(e *event) { e.Sum = 2 }),
		"redlock: vera did not hold the lock for 2 s after node5 died": change(
			perfect(), "node5", died, at(401*ms)),
		"redlock: walt got into 3 sections instead of 4": change(
			perfect(), "walt", entered, func(e *event) { e.Kind = left }),
		"redlock: nobody got in after two servers had died": change(
			perfect(), "node1", died, at(3460*ms)),
		"a quorum granted the lock only 3.01 s after the unlock": after(after(perfect(),
			"walt", 2400*ms, func(e *event) { e.At += 3008 * ms }), "xena", 2400*ms,
			func(e *event) { e.At += 3008 * ms }),
		"watchdog: eve: no route to host": append(perfect(),
			event{At: time.Minute, Kind: failed, Process: "eve", Lock: "watchdog",
				Error: "no route to host"}),
		"watchdog: finn: exit status 2\npanic: something": append(perfect(),
			event{At: time.Minute, Kind: ended, Process: "finn", Lock: "watchdog",
				Error: "exit status 2\npanic: something"}),
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
