package demo

import (
	"fmt"
	"slices"
	"time"

	"holdfast/rlock"
)

// The redlock scene: processes contend for one lock on the scene's own five servers. One server
// dies while a holder is inside, whose lease is then renewed on the others. The second dies between
// two sections of the other processes. From then on they need every server that is left. It must
// not die during a section: the holder may have the lock on no more than three servers.
const (
	redlockNodes    = 5
	redlockLease    = time.Second
	redlockStay     = 2 * redlockLease // how long the holder stays after a server has died
	redlockSections = 4                // of each of the others
	redlockBetween  = 4                // of all of them, before the second server dies
)

func redlockScene() scene {
	const holder = "vera"
	others := []string{"walt", "xena"}
	s := scene{
		lock:  "redlock",
		first: []string{holder},
		cast: []part{{
			Process: holder, Type: overQuorum, Sections: 1, Wait: longWait,
			Lease: rlock.Watchdog, WatchdogLease: redlockLease, Inside: untilCue,
		}},
	}
	for _, name := range others {
		s.cast = append(s.cast, part{
			Process: name, Type: overQuorum, Sections: redlockSections, Wait: longWait,
			Lease:  2 * time.Second,
			Inside: 60 * time.Millisecond, Outside: 500 * time.Millisecond,
		})
	}
	for i := range redlockNodes {
		s.nodes = append(s.nodes, fmt.Sprintf("node%d", i+1))
	}
	early, late := s.nodes[redlockNodes-1], s.nodes[0]
	s.title = fmt.Sprintf("one lock on %d servers; 2 of them die, and %d are a quorum",
		redlockNodes, redlockNodes/2+1)

	var (
		asked, between int
		stopped        bool
	)
	busy := map[string]bool{}
	s.react = func(cues cues, e event) {
		isOther := slices.Contains(others, e.Process)
		switch {
		case e.Process == holder && e.Kind == entered:
			for _, name := range others {
				cues.begin(name)
			}
		case isOther && e.Kind == waiting && asked < len(others):
			if asked++; asked == len(others) {
				cues.after(300*time.Millisecond, func() { cues.stop(early) })
			}
		case e.Process == early && e.Kind == died:
			cues.after(redlockStay, func() { cues.leave(holder) })
		}
		if !isOther {
			return
		}
		switch e.Kind {
		case waiting, entered:
			busy[e.Process] = true
		case left:
			delete(busy, e.Process)
			if between++; between >= redlockBetween && len(busy) == 0 && !stopped {
				stopped = true
				cues.stop(late)
			}
		}
	}
	s.verdict = func(history []event) (faults []string) {
		held, ok := findAll(history, holder, entered, leaving)
		death, ok2 := find(history, early, died)
		if !ok || !ok2 || death.At < held[0].At || held[1].At-death.At < redlockStay {
			faults = append(faults,
				fmt.Sprintf("%s did not hold the lock for %s after %s died", holder,
					brief(redlockStay), early))
		}
		second, ok := find(history, late, died)
		after := 0
		for _, name := range others {
			if n := count(history, name, entered); n != redlockSections {
				faults = append(faults,
					fmt.Sprintf("%s got into %d sections instead of %d", name, n, redlockSections))
			}
			for _, e := range history {
				if e.Process == name && e.Kind == entered && e.At > second.At {
					after++
				}
			}
		}
		if !ok || after == 0 {
			faults = append(faults, "nobody got in after two servers had died")
		}
		return faults
	}
	return s
}
