package demo

import (
	"fmt"
	"slices"
	"time"
)

// The read-write scene: while two processes read together a writer comes. New readers step back for
// it, and it gets in alone when those inside have left. Another reader comes while it writes. When
// the writer leaves, all readers that waited for it read together.
func readWriteScene() scene {
	const writer = "wim"
	early, late := []string{"quinn", "rosa"}, []string{"sam", "tess", "uma"}
	s := scene{
		lock:  "readwrite",
		title: "readers together, a writer alone; new readers step back for it",
		first: early,
	}
	add := func(process, lockType string, inside time.Duration) {
		s.cast = append(s.cast, part{
			Process: process, Type: lockType, Sections: 1, Wait: longWait, Lease: longWait,
			Inside: inside,
		})
	}
	for _, name := range early {
		add(name, reading, untilCue)
	}
	add(writer, writing, untilCue)
	for _, name := range late {
		add(name, reading, untilCue)
	}

	newcomers, last := late[:len(late)-1], late[len(late)-1]
	var in, asked, inAfter int
	s.react = func(cues cues, e event) {
		isEarly, isLate := slices.Contains(early, e.Process), slices.Contains(late, e.Process)
		leaveOneByOne := func(names []string) {
			for i, name := range names {
				cues.after(time.Duration(i+1)*300*time.Millisecond, func() { cues.leave(name) })
			}
		}
		switch {
		case isEarly && e.Kind == entered:
			if in++; in == len(early) {
				cues.after(200*time.Millisecond, func() { cues.begin(writer) })
			}
		case e.Process == writer && e.Kind == queued:
			for _, name := range newcomers {
				cues.begin(name)
			}
		case e.Process == writer && e.Kind == entered:
			cues.begin(last)
		case e.Process == last && e.Kind == waiting:
			cues.after(500*time.Millisecond, func() { cues.leave(writer) })
		case isLate && e.Kind == waiting:
			if asked++; asked == len(newcomers) {
				leaveOneByOne(early)
			}
		case isLate && e.Kind == entered:
			if inAfter++; inAfter == len(late) {
				leaveOneByOne(late)
			}
		}
	}
	s.verdict = func(history []event) (faults []string) {
		for _, readers := range [][]string{early, late} {
			if !together(history, readers) {
				faults = append(faults, fmt.Sprintf("%s did not read together", readers))
			}
		}
		if wrote, ok := findAll(history, writer, waiting, queued, entered, leaving); !ok {
			faults = append(faults, writer+" did not wait and then write")
		} else {
			for _, name := range late {
				read, ok := findAll(history, name, waiting, entered)
				if ok &&
					(read[0].At < wrote[1].At || read[0].At > wrote[3].At ||
						read[1].At < wrote[3].At) {
					faults = append(faults, fmt.Sprintf("%s did not wait for %s", name, writer))
				}
			}
		}
		return faults
	}
	return s
}

// together reports whether all these processes were inside at some moment.
func together(history []event, processes []string) bool {
	var lastIn, firstOut time.Duration
	for i, name := range processes {
		stayed, ok := findAll(history, name, entered, leaving)
		if !ok {
			return false
		}
		lastIn = max(lastIn, stayed[0].At)
		if i == 0 || stayed[1].At < firstOut {
			firstOut = stayed[1].At
		}
	}
	return lastIn < firstOut
}
