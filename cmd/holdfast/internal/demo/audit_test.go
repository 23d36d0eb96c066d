package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSuccessiveSectionsDoNotOverlap(t *testing.T) {
	all := sections(perfect())
	require.Len(t, all, perfectSections)
	require.Zero(t, overlaps(all))
}

func TestAuditSeesSectionsThatWereNotAlone(t *testing.T) {
	in := func(process string, at int, found string) event {
		return event{Kind: entered, Lock: "l", Process: process, At: time.Duration(at) * ms,
			Found: found}
	}
	out := func(process string, at int, found string) event {
		return event{Kind: leaving, Lock: "l", Process: process, At: time.Duration(at) * ms,
			Found: found}
	}
	otherLock := func(e event) event { e.Lock = "other"; return e }
	shared := func(e event) event { e.Shared = true; return e }
	dies := func(process string, at int) event {
		return event{Kind: killed, Lock: "l", Process: process, At: time.Duration(at) * ms}
	}
	for name, c := range map[string]struct {
		history  []event
		sections int
		overlaps int
	}{
		"one in another": {
			[]event{in("a", 1, ""), in("b", 2, ""), out("b", 3, "b"), out("a", 4, "a")}, 2, 2,
		},
		"one runs into another": {
			[]event{in("a", 1, ""), in("b", 2, ""), out("a", 3, "a"), out("b", 4, "b")}, 2, 2,
		},
		"three, one of them ok": {
			[]event{in("c", 0, ""), out("c", 1, "c"), in("a", 2, ""), in("b", 3, ""),
				out("a", 4, "a"), out("b", 5, "b")}, 3, 2,
		},
		"long one, two inside": {
			[]event{in("a", 1, ""), in("b", 2, ""), out("b", 3, "b"), in("c", 4, ""),
				out("c", 5, "c"), out("a", 6, "a")}, 3, 3,
		},
		"never left": {
			[]event{in("a", 1, ""), in("b", 9, ""), out("b", 10, "b")}, 2, 2,
		},
		"one after another": {
			[]event{in("a", 1, ""), out("a", 2, "a"), in("b", 2, ""), out("b", 3, "b")}, 2, 0,
		},
		"different locks": {
			[]event{in("a", 1, ""), otherLock(in("b", 2, "")), out("a", 3, "a"),
				otherLock(out("b", 4, "b"))}, 2, 0,
		},
		"readers together": {
			[]event{shared(in("a", 1, "")), shared(in("b", 2, "")), out("a", 3, "a"),
				out("b", 4, "b")}, 2, 0,
		},
		"writer among readers": {
			[]event{shared(in("a", 1, "")), in("w", 2, ""), out("a", 3, "a"),
				out("w", 4, "w")}, 2, 2,
		},
		"reader at a writer's": {
			[]event{in("w", 1, ""), shared(in("a", 2, "")), out("a", 3, "a"),
				out("w", 4, "w")}, 2, 2,
		},
		"reader finds a writer": {
			[]event{in("w", 1, ""), out("w", 2, "w"), shared(in("a", 3, "w")),
				out("a", 4, "a")}, 2, 1,
		},
		"marker at the entrance": {
			[]event{in("a", 1, ""), out("a", 2, "a"), in("b", 3, "a"), out("b", 4, "b")}, 2, 1,
		},
		"marker at the exit": {
			[]event{in("a", 1, ""), out("a", 2, "b"), in("b", 3, ""), out("b", 4, "b")}, 2, 1,
		},
		"marker gone at the exit": {[]event{in("a", 1, ""), out("a", 2, "nobody")}, 1, 1},
		"marker of the dead": {
			[]event{in("a", 1, ""), dies("a", 2), in("b", 3, "a"), out("b", 4, "b")}, 2, 0,
		},
		"before the other died": {
			[]event{in("a", 1, ""), in("b", 2, "a"), dies("a", 3), out("b", 4, "b")}, 2, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := sections(c.history)
			require.Len(t, all, c.sections)
			require.Equal(t, c.overlaps, overlaps(all))
		})
	}
}

func TestAuditSeesOvertakenWaiters(t *testing.T) {
	at := func(at int, kind kind, process string) event {
		return event{At: time.Duration(at) * ms, Kind: kind, Lock: "l", Process: process}
	}
	otherLock := func(e event) event { e.Lock = "other"; return e }
	came := []event{at(1, waiting, "a"), at(2, queued, "a"), at(3, waiting, "b"),
		at(4, queued, "b")}
	for name, c := range map[string]struct {
		then []event
		want []overtaking
	}{
		"in order": {[]event{at(5, entered, "a"), at(6, entered, "b")}, nil},
		"out of order": {
			[]event{at(5, entered, "b"), at(6, entered, "a")}, []overtaking{{"l", "a", "b"}},
		},
		"a waiter that never queued": {
			[]event{at(5, waiting, "c"), at(6, entered, "c")}, []overtaking{{"l", "a", "c"},
				{"l", "b", "c"}},
		},
		"the first gave up":    {[]event{at(5, gaveUp, "a"), at(6, entered, "b")}, nil},
		"the first was killed": {[]event{at(5, killed, "a"), at(6, entered, "b")}, nil},
		"the first was in and left": {
			[]event{at(5, entered, "a"), at(6, leaving, "a"), at(7, entered, "b")}, nil,
		},
		"another lock": {
			[]event{otherLock(at(5, waiting, "c")), otherLock(at(6, entered, "c"))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, overtakings(append(slices.Clone(came), c.then...)))
		})
	}
	// A waiter that asked before the other was known to be queued may come first.
	require.Empty(t,
		overtakings([]event{at(1, waiting, "a"), at(2, waiting, "b"), at(3, queued, "a"),
			at(4, entered, "b")}))
}
