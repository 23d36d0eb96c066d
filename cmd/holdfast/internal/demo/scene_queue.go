package demo

import (
	"fmt"
	"time"
)

// The queue scene: processes queue one after the other behind a holder and get a fair lock in that
// order. One gives up in the middle, and one is killed. The queue passes over the first at once,
// because it said so, and over the dead one when the next waiter finds it gone. A process that has
// had the lock comes back while the dead one is the head of the queue: the lock is free then, but
// not for it.
const (
	queueWait  = 2 * longWait
	queueShort = 1500 * time.Millisecond // the wait of the quitter
	// how often the next in the queue checks whether the one before is still there
	queuePass = 5 * time.Second
)

func queueScene() scene {
	const (
		holder, first, quitter = "kate", "liam", "mia"
		second, victim, third  = "noah", "olga", "paul"
	)
	s := scene{
		lock:  "queue",
		title: "a fair lock: first come, first served; one gives up, one is killed",
		cast: []part{
			{Process: holder, Type: fair, Sections: 1, Wait: queueWait, Lease: longWait,
				Inside: untilCue},
		},
		first: []string{holder},
	}
	for _, name := range []string{first, quitter, second, victim, third} {
		p := part{Process: name, Type: fair, Sections: 1, Wait: queueWait, Lease: longWait,
			Inside: 300 * time.Millisecond}
		switch name {
		case quitter:
			p.Wait = queueShort
		case second:
			p.Sections, p.Outside = 2, 300*time.Millisecond
		}
		s.cast = append(s.cast, p)
	}
	come, gone := 1, 0
	s.react = func(cues cues, e event) {
		switch {
		case e.Process == holder && e.Kind == entered, e.Kind == queued && come < len(s.cast):
			name := s.cast[come].Process
			come++
			cues.after(100*time.Millisecond, func() { cues.begin(name) })
		case e.Process == third && e.Kind == queued:
			cues.after(400*time.Millisecond, func() { cues.kill(victim) })
		case e.Process == quitter && e.Kind == gaveUp, e.Process == victim && e.Kind == killed:
			if gone++; gone == 2 {
				cues.after(300*time.Millisecond, func() { cues.leave(holder) })
			}
		}
	}
	s.verdict = func(history []event) (faults []string) {
		for _, p := range s.cast[1:] {
			promise := []kind{waiting, queued, entered, leaving}
			switch p.Process {
			case quitter:
				promise = []kind{waiting, queued, gaveUp}
			case victim:
				promise = []kind{waiting, queued, killed}
			}
			if _, ok := findAll(history, p.Process, promise...); !ok {
				faults = append(faults,
					fmt.Sprintf("%s was to be %s and then %s", p.Process, promise[1], promise[2]))
			}
		}
		if n := count(history, second, entered); n != 2 {
			faults = append(faults, fmt.Sprintf("%s got in %d times instead of 2", second, n))
		}
		if _, got := find(history, victim, entered); got {
			faults = append(faults, victim+" got in before it was killed")
		}
		before, ok := find(history, second, leaving)
		after, ok2 := find(history, third, entered)
		if took := after.At - before.At; ok && ok2 && took > queuePass+slack {
			faults = append(faults,
				fmt.Sprintf("%s was passed over after %s instead of %s", victim, brief(took),
					brief(queuePass)))
		}
		return faults
	}
	return s
}
