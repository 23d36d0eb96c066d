package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSuccessiveSectionsDoNotOverlap(t *testing.T) {
	all := audit(perfect())
	require.Len(t, all, perfectSections)
	count, _ := overlaps(all)
	require.Zero(t, count)
}

func TestAuditSeesSectionsThatWereNotAlone(t *testing.T) {
	in := func(process string, at int, found ...string) event {
		return event{Kind: entered, Lock: "l", Process: process, At: time.Duration(at) * ms,
			Found: found}
	}
	out := func(process string, at int, found ...string) event {
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
			[]event{in("a", 1), in("b", 2), out("b", 3), out("a", 4)}, 2, 2,
		},
		"one runs into another": {
			[]event{in("a", 1), in("b", 2), out("a", 3), out("b", 4)}, 2, 2,
		},
		"three, one of them ok": {
			[]event{in("c", 0), out("c", 1), in("a", 2), in("b", 3),
				out("a", 4), out("b", 5)}, 3, 2,
		},
		"long one, two inside": {
			[]event{in("a", 1), in("b", 2), out("b", 3), in("c", 4),
				out("c", 5), out("a", 6)}, 3, 3,
		},
		"never left": {
			[]event{in("a", 1), in("b", 9), out("b", 10)}, 2, 2,
		},
		"one after another": {
			[]event{in("a", 1), out("a", 2), in("b", 2), out("b", 3)}, 2, 0,
		},
		"different locks": {
			[]event{in("a", 1), otherLock(in("b", 2)), out("a", 3),
				otherLock(out("b", 4))}, 2, 0,
		},
		"readers together": {
			[]event{shared(in("a", 1)), shared(in("b", 2)), out("a", 3),
				out("b", 4)}, 2, 0,
		},
		"writer among readers": {
			[]event{shared(in("a", 1)), in("w", 2), out("a", 3),
				out("w", 4)}, 2, 2,
		},
		"reader at a writer's": {
			[]event{in("w", 1), shared(in("a", 2)), out("a", 3),
				out("w", 4)}, 2, 2,
		},
		"reader finds a writer": {
			[]event{in("w", 1), out("w", 2), shared(in("a", 3, "w")),
				out("a", 4)}, 2, 1,
		},
		"marker at the entrance": {
			[]event{in("a", 1), out("a", 2), in("b", 3, "a"), out("b", 4)}, 2, 1,
		},
		"marker at the exit": {
			[]event{in("a", 1), out("a", 2, "b"), in("b", 3), out("b", 4)}, 2, 1,
		},
		"marker of the dead": {
			[]event{in("a", 1), dies("a", 2), in("b", 3, "a"), out("b", 4, "a")}, 2, 0,
		},
		"marker of the dead and of another": {
			[]event{in("a", 1), dies("a", 2), in("b", 3, "a", "c"), out("b", 4)}, 2, 1,
		},
		"before the other died": {
			[]event{in("a", 1), in("b", 2, "a"), dies("a", 3), out("b", 4)}, 2, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := audit(c.history)
			require.Len(t, all, c.sections)
			count, _ := overlaps(all)
			require.Equal(t, c.overlaps, count)
		})
	}
}

// overtaken returns who got in before whom.
func overtaken(history []event) (all []string) {
	s := newStory([]scene{
		{cast: each(part{Lock: "l"}, "a", "b", "c")}, {cast: each(part{Lock: "other"}, "d")},
	}, func(string) {})
	for _, e := range history {
		s.tell(e)
	}
	for _, fault := range s.faults {
		if strings.Contains(fault, "got in") {
			said := strings.NewReplacer("l: ", "", " got in", "", ", who was queued already", "")
			all = append(all, said.Replace(fault))
		}
	}
	return all
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
		want []string
	}{
		"in order": {[]event{at(5, entered, "a"), at(6, entered, "b")}, nil},
		"out of order": {
			[]event{at(5, entered, "b"), at(6, entered, "a")}, []string{"b before a"},
		},
		"a waiter that never queued": {
			[]event{at(5, waiting, "c"), at(6, entered, "c")}, []string{"c before a",
				"c before b"},
		},
		"the first gave up":    {[]event{at(5, gaveUp, "a"), at(6, entered, "b")}, nil},
		"the first was killed": {[]event{at(5, killed, "a"), at(6, entered, "b")}, nil},
		"the first was in and left": {
			[]event{at(5, entered, "a"), at(6, leaving, "a"), at(7, entered, "b")}, nil,
		},
		"another lock": {
			[]event{otherLock(at(5, waiting, "d")), otherLock(at(6, entered, "d"))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, overtaken(append(slices.Clone(came), c.then...)))
		})
	}
	// A waiter that asked before the other was known to be queued may come first.
	require.Empty(t,
		overtaken([]event{at(1, waiting, "a"), at(2, waiting, "b"), at(3, queued, "a"),
			at(4, entered, "b")}))
}
