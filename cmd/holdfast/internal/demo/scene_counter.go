package demo

import (
	"fmt"
	"time"
)

// The counter scene: processes increment a counter by reading it, pausing, and writing it. Each
// acquires the lock with a wait and a lease, and in some sections a second level inside.
const (
	counterSections  = 12
	counterNestEvery = 3
)

func counterScene(unlocked bool) scene {
	s := scene{lock: "counter"}
	for _, name := range []string{"ada", "ben", "cleo", "dan"} {
		s.first = append(s.first, name)
		s.cast = append(s.cast, part{
			Process:   name,
			Sections:  counterSections,
			NestEvery: counterNestEvery,
			Wait:      longWait,
			Lease:     2 * time.Second,
			Inside:    60 * time.Millisecond,
			Outside:   20 * time.Millisecond,
			Unlocked:  unlocked,
		})
	}
	s.title = fmt.Sprintf("%d processes, %d sections, never two at a time", len(s.cast),
		len(s.cast)*counterSections)
	s.verdict = func(history []event) (faults []string) {
		for _, p := range s.cast {
			var in, deeper int
			for _, e := range history {
				switch {
				case e.Process != p.Process:
				case e.Kind == entered:
					in++
				case e.Kind == nested && e.Count == 2:
					deeper++
				}
			}
			if in != p.Sections {
				faults = append(faults,
					fmt.Sprintf("%s got into %d sections instead of %d", p.Process, in, p.Sections))
			}
			want := (p.Sections + p.NestEvery - 1) / p.NestEvery
			if p.Unlocked {
				want = 0
			}
			if deeper != want {
				faults = append(faults,
					fmt.Sprintf("%s re-entered to level 2 %d times instead of %d", p.Process,
						deeper, want))
			}
		}
		return faults
	}
	return s
}
