package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		"one runs into another": {
			[]event{in("a", 1), in("b", 2), out("a", 3), out("b", 4)}, 2, 2,
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
		"reader finds a writer": {
			[]event{in("w", 1), out("w", 2), shared(in("a", 3, "w")),
				out("a", 4)}, 2, 1,
		},
		"marker at the entrance": {
			[]event{in("a", 1), out("a", 2), in("b", 3, "a"), out("b", 4)}, 2, 1,
		},
		"marker of the dead and of another": {
			[]event{in("a", 1), dies("a", 2), in("b", 3, "a", "c"), out("b", 4)}, 2, 1,
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
