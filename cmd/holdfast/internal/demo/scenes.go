package demo

import (
	"fmt"
	"slices"
	"time"

	"holdfast/rlock"
)

const (
	longWait = 10 * time.Second // not meant to end by itself
	slack    = time.Second      // how much later than promised it may be on a busy machine

	watchdogLease = time.Second // the shortest of all, for each holder with a watchdog

	ms = time.Millisecond
)

// scenes returns the scenes of the demo, which are played at the same time. If unlocked, the
// counter is not locked.
func scenes(unlocked bool) []scene {
	all := []scene{
		counterScene(unlocked), queueScene(), readWriteScene(), transferScene(), redlockScene(),
		watchdogScene(), takeoverScene(), timeoutScene(),
	}
	for _, s := range all {
		for i := range s.cast {
			s.cast[i].Lock = s.lock
		}
	}
	return all
}

// add adds processes that do the same.
func (s *scene) add(p part, processes ...string) {
	for _, p.Process = range processes {
		s.cast = append(s.cast, p)
	}
}

// Processes increment a counter by reading it, pausing, and writing it. In every third section they
// acquire a second level inside.
func counterScene(unlocked bool) scene {
	s := scene{
		lock: "counter", title: "4 processes, 48 sections, never two at a time",
		times: map[kind]int{left: 48, nested: 16},
	}
	p := part{Wait: longWait, Lease: 2 * time.Second, Unlocked: unlocked}
	for n := range 12 {
		p.Sections = append(p.Sections, section{20 * ms, 60 * ms, n%3 == 0})
	}
	s.add(p, "ada", "ben", "cleo", "dan")
	return s
}

// Processes queue one after the other behind a holder. One gives up in the middle: the queue passes
// over it at once, because it said so. One is killed: the queue passes over it when the next waiter
// finds that it no longer asks, after 5 s. A process that has had the lock comes back meanwhile: the
// lock is free then, but not for it.
func queueScene() scene {
	s := scene{
		lock: "queue", title: "a fair lock: first come, first served; one gives up, one is killed",
		cues: []cue{
			{"kate entered", 100 * ms, "go liam"},
			{"liam queued", 100 * ms, "go mia"},
			{"mia queued", 100 * ms, "go noah"},
			{"noah queued", 100 * ms, "go olga"},
			{"olga queued", 100 * ms, "go paul"},
			{"paul queued", 400 * ms, "kill olga"},
			{"mia gave-up, olga killed", 300 * ms, "go kate"},
		},
		times: map[kind]int{entered: 5, left: 5},
		promises: []promise{
			{story: "liam queued, mia queued, noah queued, olga queued, paul queued, olga killed, " +
				"kate leaving, liam entered, noah entered, noah leaving, paul entered, noah entered"},
			{"mia waiting, mia gave-up", 1500 * ms, 1500*ms + slack},
			{story: "liam entered, noah leaving, paul entered", most: 5*time.Second + 2*slack},
		},
	}
	p := part{Type: fair, Wait: 2 * longWait, Lease: longWait, Sections: []section{{0, untilCue, false}}}
	s.add(p, "kate")
	p.Sections = []section{{untilCue, 300 * ms, false}}
	s.add(p, "liam", "mia", "noah", "olga", "paul")
	s.cast[2].Wait = 1500 * ms
	s.cast[3].Sections = append(slices.Clone(p.Sections), section{300 * ms, 300 * ms, false})
	return s
}

// While two processes read together a writer comes. New readers step back for it, and it gets in
// alone when those inside have left. Another reader comes while it writes. When the writer leaves,
// all readers that waited for it read together.
func readWriteScene() scene {
	s := scene{
		lock: "readwrite", title: "readers together, a writer alone; new readers step back for it",
		cues: []cue{
			{"quinn entered, rosa entered", 200 * ms, "go wim"},
			{"wim queued", 0, "go sam tess"},
			{"sam waiting, tess waiting", 300 * ms, "go quinn"},
			{"sam waiting, tess waiting", 600 * ms, "go rosa"},
			{"wim entered", 0, "go uma"},
			{"uma waiting", 500 * ms, "go wim"},
			{"sam entered, tess entered, uma entered", 300 * ms, "go sam"},
			{"sam entered, tess entered, uma entered", 600 * ms, "go tess"},
			{"sam entered, tess entered, uma entered", 900 * ms, "go uma"},
		},
		times: map[kind]int{left: 6},
		promises: []promise{
			{story: "wim entered, uma waiting, wim leaving, uma entered"},
		},
	}
	p := part{Type: reading, Wait: longWait, Lease: longWait, Sections: []section{{0, untilCue, false}}}
	s.add(p, "quinn", "rosa")
	p.Sections = []section{{untilCue, untilCue, false}}
	s.add(p, "sam", "tess", "uma")
	p.Type = writing
	s.add(p, "wim")
	for _, early := range []string{"quinn", "rosa"} {
		for _, late := range []string{"sam", "tess"} {
			s.promises = append(s.promises,
				promise{story: fmt.Sprintf("%[1]s entered, wim waiting, wim queued, %[2]s waiting, "+
					"%[1]s leaving, wim entered, wim leaving, %[2]s entered", early, late)},
				promise{story: late + " entered, uma leaving"}, promise{story: "uma entered, " + late + " leaving"})
		}
	}
	return s
}

// Processes move money between two accounts, in opposite directions, and each names the locks of
// both accounts in its own order. Acquired one by one in that order, they would soon deadlock.
func transferScene() scene {
	s := scene{
		lock: "transfer", title: "a MultiLock of two fair locks, named in opposite orders",
		times: map[kind]int{left: 8},
	}
	p := part{Type: several, Wait: longWait, Lease: 2 * time.Second,
		Sections: slices.Repeat([]section{{Before: 20 * ms}}, 4)}
	p.Accounts = []string{"savings", "current"}
	s.add(p, "yuri")
	p.Accounts = []string{"current", "savings"}
	s.add(p, "zoe")
	return s
}

// Processes contend for one lock on the scene's own five servers. One dies while a holder is
// inside, whose lease is then renewed on the others. The second dies between two sections: from
// then on they need every server that is left. It must not die during a section, because the holder
// may have the lock on no more than three.
func redlockScene() scene {
	s := scene{
		lock: "redlock", title: "one lock on 5 servers; 2 of them die, and 3 are a quorum",
		nodes: []string{"node1", "node2", "node3", "node4", "node5"},
		cues: []cue{
			{"vera entered", 0, "go walt xena"},
			{"walt waiting, xena waiting", 300 * ms, "stop node5"},
			{"node5 died", 2 * watchdogLease, "go vera"},
			{"walt left 2, xena left 2", 0, "stop node1"},
			{"node1 died", 200 * ms, "go walt xena"},
		},
		times: map[kind]int{left: 9},
		promises: []promise{
			{"node5 died, vera leaving", 2 * watchdogLease, 0},
			{story: "vera entered, node5 died, vera leaving, node1 died, walt entered"},
			{story: "node1 died, xena entered"},
		},
	}
	p := part{Type: overQuorum, Wait: longWait, Lease: rlock.Watchdog, WatchdogLease: watchdogLease,
		Sections: []section{{0, untilCue, false}}}
	s.add(p, "vera")
	p.Lease, p.WatchdogLease = 2*time.Second, 0
	stay, first := section{500 * ms, 60 * ms, false}, section{untilCue, 60 * ms, false}
	p.Sections = []section{first, stay, first, stay}
	s.add(p, "walt", "xena")
	return s
}

// A holder stays for four leases while another process waits.
func watchdogScene() scene {
	s := scene{
		lock: "watchdog", title: "a lease of 1 s, renewed while its holder lives",
		cues:  []cue{{"eve entered", 0, "go finn"}},
		times: map[kind]int{left: 2},
		promises: []promise{
			{"eve entered, eve leaving", 4 * watchdogLease, 0},
			{story: "finn waiting, eve leaving, finn entered"},
		},
	}
	p := part{Wait: longWait, Lease: rlock.Watchdog, WatchdogLease: watchdogLease,
		Sections: []section{{0, 4 * watchdogLease, false}}}
	s.add(p, "eve")
	p.Lease, p.WatchdogLease, p.Sections = longWait, 0, []section{{untilCue, 500 * ms, false}}
	s.add(p, "finn")
	return s
}

// A holder whose lease is being renewed is killed. Nobody unlocks; the lock passes on when the rest
// of the lease is over.
func takeoverScene() scene {
	s := scene{
		lock: "takeover", title: "SIGKILL: nobody renews the lease of 1 s any more",
		cues: []cue{
			{"gina entered", 0, "go hugo"},
			{"hugo waiting", 2 * watchdogLease, "kill gina"},
		},
		times: map[kind]int{entered: 2, left: 1},
		promises: []promise{
			{story: "gina entered, hugo waiting, gina killed, hugo entered"},
			{"gina killed, hugo entered", 0, watchdogLease + slack},
		},
	}
	p := part{Wait: longWait, Lease: rlock.Watchdog, WatchdogLease: watchdogLease,
		Sections: []section{{0, untilCue, false}}}
	s.add(p, "gina")
	p.Lease, p.WatchdogLease, p.Sections = longWait, 0, []section{{untilCue, 500 * ms, false}}
	s.add(p, "hugo")
	return s
}

// A holder has a long lease, and a contender does not wait that long.
func timeoutScene() scene {
	s := scene{
		lock: "timeout", title: "a lease of 30 s, and one who waits 1.5 s",
		cues: []cue{
			{"iris entered", 0, "go jack"},
			{"jack gave-up", 0, "go iris"},
		},
		times: map[kind]int{entered: 1, left: 1},
		promises: []promise{
			{story: "iris entered, jack waiting, jack gave-up, iris left"},
			{"jack waiting, jack gave-up", 1500 * ms, 1500*ms + slack},
		},
	}
	p := part{Wait: longWait, Lease: 30 * time.Second, Sections: []section{{0, untilCue, false}}}
	s.add(p, "iris")
	p.Wait, p.Sections = 1500*ms, []section{{untilCue, 0, false}}
	s.add(p, "jack")
	return s
}
