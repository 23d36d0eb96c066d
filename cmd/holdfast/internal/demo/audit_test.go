package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSectionsOneAfterAnotherDoNotOverlap(t *testing.T) {
	all := sections(perfect())
	require.Len(t, all, perfectSections)
	require.Zero(t, overlaps(all))
}

func TestAuditSeesSectionsThatWereNotAlone(t *testing.T) {
	in := func(process string, at int, found string) event {
		return event{Kind: entered, Lock: "l", Process: process, At: time.Duration(at) * ms, Found: found}
	}
	out := func(process string, at int, found string) event {
		return event{Kind: leaving, Lock: "l", Process: process, At: time.Duration(at) * ms, Found: found}
	}
	otherLock := func(e event) event { e.Lock = "other"; return e }
	dies := func(process string, at int) event {
		return event{Kind: killed, Lock: "l", Process: process, At: time.Duration(at) * ms}
	}
	for name, c := range map[string]struct {
		history  []event
		sections int
		overlaps int
	}{
		"one in another":          {[]event{in("a", 1, ""), in("b", 2, ""), out("b", 3, "b"), out("a", 4, "a")}, 2, 2},
		"one runs into another":   {[]event{in("a", 1, ""), in("b", 2, ""), out("a", 3, "a"), out("b", 4, "b")}, 2, 2},
		"three, one of them ok":   {[]event{in("c", 0, ""), out("c", 1, "c"), in("a", 2, ""), in("b", 3, ""), out("a", 4, "a"), out("b", 5, "b")}, 3, 2},
		"long one, two inside":    {[]event{in("a", 1, ""), in("b", 2, ""), out("b", 3, "b"), in("c", 4, ""), out("c", 5, "c"), out("a", 6, "a")}, 3, 3},
		"never left":              {[]event{in("a", 1, ""), in("b", 9, ""), out("b", 10, "b")}, 2, 2},
		"one after another":       {[]event{in("a", 1, ""), out("a", 2, "a"), in("b", 2, ""), out("b", 3, "b")}, 2, 0},
		"different locks":         {[]event{in("a", 1, ""), otherLock(in("b", 2, "")), out("a", 3, "a"), otherLock(out("b", 4, "b"))}, 2, 0},
		"marker at the entrance":  {[]event{in("a", 1, ""), out("a", 2, "a"), in("b", 3, "a"), out("b", 4, "b")}, 2, 1},
		"marker at the exit":      {[]event{in("a", 1, ""), out("a", 2, "b"), in("b", 3, ""), out("b", 4, "b")}, 2, 1},
		"marker gone at the exit": {[]event{in("a", 1, ""), out("a", 2, "nobody")}, 1, 1},
		"marker of the dead":      {[]event{in("a", 1, ""), dies("a", 2), in("b", 3, "a"), out("b", 4, "b")}, 2, 0},
		"before the other died":   {[]event{in("a", 1, ""), in("b", 2, "a"), dies("a", 3), out("b", 4, "b")}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			all := sections(c.history)
			require.Len(t, all, c.sections)
			require.Equal(t, c.overlaps, overlaps(all))
		})
	}
}
