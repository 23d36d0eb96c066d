package demo

import (
	"cmp"
	"slices"
	"time"

	"holdfast/rlock"
)

const (
	ms            = time.Millisecond
	longWait      = 10 * time.Second // not meant to end by itself
	slack         = time.Second      // how much later than promised it may be on a busy machine
	watchdogLease = time.Second      // the lease of those that are renewed
)

// each returns parts for processes that do the same.
func each(p part, processes ...string) (all []part) {
	for _, p.Process = range processes {
		all = append(all, p)
	}
	return all
}

// stay returns one section, which ends on a cue; onCue one that begins on a cue.
func stay() []section                      { return []section{{0, untilCue, false}} }
func onCue(inside time.Duration) []section { return []section{{untilCue, inside, false}} }

// scenes returns the scenes of the demo, which are played at the same time. If unlocked, the
// counter is not locked. All keys begin with prefix.
func scenes(prefix string, where server, unlocked bool) []scene {
	nest, plain := section{20 * ms, 60 * ms, true}, section{20 * ms, 60 * ms, false}
	four, again := []section{plain, plain, plain, plain}, section{300 * ms, 300 * ms, false}
	first, second := section{untilCue, 60 * ms, false}, section{500 * ms, 60 * ms, false}
	all := []scene{{
		// In every third section, processes acquire a second level.
		lock: "counter", title: "4 processes, 48 holds, never two at a time",
		cast: each(part{Sections: slices.Repeat([]section{nest, plain, plain}, 4),
			Unlocked: unlocked}, "ada", "ben", "cleo", "dan"),
		times: map[kind]int{left: 48, nested: 16},
	}, {
		// The queue passes over a process that gives up at once, and over one that is killed when the
		// next waiter finds that it no longer asks. A process that has had the lock comes back
		// meanwhile: the lock is free then, but not for it.
		lock: "queue", title: "a fair lock: first come, first served; one gives up, one is killed",
		queues: true,
		cast: slices.Concat(each(part{Type: fair, Sections: stay()}, "kate"),
			each(part{Type: fair, Sections: onCue(300 * ms)}, "liam"),
			each(part{Type: fair, Sections: onCue(300 * ms), Wait: 1500 * ms}, "mia"),
			each(part{Type: fair, Sections: append(onCue(300*ms), again)}, "noah"),
			each(part{Type: fair, Sections: onCue(300 * ms)}, "olga", "paul")),
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
			{"noah leaving, paul entered", 0, 5*time.Second + slack},
		},
	}, {
		// A writer gets in alone when the readers inside have left. When it leaves, all readers that
		// waited for it read together, also one that came while it wrote.
		lock: "readwrite", title: "readers together, a writer alone; new readers step back for it",
		queues: true,
		cast: slices.Concat(each(part{Type: reading, Sections: stay()}, "quinn", "rosa"),
			each(part{Type: writing, Sections: onCue(untilCue)}, "wim"),
			each(part{Type: reading, Sections: onCue(untilCue)}, "sam", "tess", "uma")),
		cues: []cue{
			{"quinn entered, rosa entered", 200 * ms, "go wim"},
			{"wim queued", 0, "go sam tess"},
			{"sam waiting, tess waiting", 300 * ms, "go quinn"},
			{"quinn left", 300 * ms, "go rosa"},
			{"wim entered", 0, "go uma"},
			{"uma waiting", 500 * ms, "go wim"},
			{"sam entered, tess entered, uma entered", 300 * ms, "go sam"},
			{"sam left", 300 * ms, "go tess uma"},
		},
		times: map[kind]int{left: 6},
		promises: []promise{
			{story: "quinn entered, wim waiting, wim queued, sam waiting, quinn leaving, " +
				"wim entered, uma waiting, wim leaving, uma entered, sam leaving"},
			{story: "rosa entered, wim waiting, wim queued, tess waiting, rosa leaving, " +
				"wim entered, wim leaving, tess entered, sam leaving"},
			{story: "wim leaving, sam entered, sam leaving, tess leaving"},
		},
	}, {
		// Processes need two locks, those of the accounts that they move money between, and each
		// names them in its own order. Acquired one by one in that order, they would soon deadlock.
		lock: "transfer", title: "a MultiLock of two fair locks, named in opposite orders",
		cast: []part{
			{Process: "yuri", Type: several, Names: []string{"savings", "current"}, Sections: four},
			{Process: "zoe", Type: several, Names: []string{"current", "savings"}, Sections: four},
		},
		times: map[kind]int{left: 8},
	}, {
		// One server dies while a holder is inside, whose lease is then renewed on the others. The
		// second dies between two sections, because a holder may have the lock on no more than three.
		// From then on processes need every server that is left.
		lock: "redlock", title: "one lock on 5 servers; 2 of them die, and 3 are a quorum",
		nodes: []string{"node1", "node2", "node3", "node4", "node5"},
		cast: append(each(part{Type: overQuorum, Sections: []section{first, second, first, second}},
			"walt", "xena"),
			part{Process: "vera", Type: overQuorum, Lease: rlock.Watchdog, Sections: stay()}),
		cues: []cue{
			{"vera entered", 0, "go walt xena"},
			{"walt waiting, xena waiting", 300 * ms, "stop node5"},
			{"node5 died", 2 * watchdogLease, "go vera"},
			{"walt left 2, xena left 2", 0, "stop node1"},
			{"node1 died", 200 * ms, "go walt xena"},
		},
		times: map[kind]int{left: 9},
		promises: []promise{
			{"node5 died, vera leaving", 2 * watchdogLease, longWait},
			{story: "vera entered, node5 died, vera leaving, node1 died, walt entered"},
			{story: "node1 died, xena entered"},
		},
	}, {
		// Nobody unlocks for a holder that is killed: the lock passes on when the rest of the lease is
		// over. A process that gives up before reports how long the lock is still held.
		lock: "watchdog", title: "a lease of 1 s, renewed while its holder lives: until SIGKILL",
		cast: []part{
			{Process: "gina", Lease: rlock.Watchdog, Sections: stay()},
			{Process: "hugo", Sections: onCue(500 * ms)},
			{Process: "jack", Wait: 1500 * ms, Sections: onCue(0)},
		},
		cues: []cue{
			{"gina entered", 0, "go hugo jack"},
			{"hugo waiting, jack gave-up", 2 * watchdogLease, "kill gina"},
		},
		times: map[kind]int{entered: 2, left: 1},
		promises: []promise{
			{"gina entered, hugo waiting, gina killed", 3 * watchdogLease, longWait},
			{"gina killed, hugo entered", 0, watchdogLease + slack},
			{"jack waiting, jack gave-up", 1500 * ms, 1500*ms + slack},
		},
	}, {
		// A leader that is killed is followed when the rest of its lease is over; one that resigns, at
		// once.
		lock: "leader", title: "one of 3 leads: it is killed, and the next one resigns",
		cast: slices.Concat(each(part{Type: leading, Lease: rlock.Watchdog, Sections: stay()}, "alma"),
			each(part{Type: leading, Lease: rlock.Watchdog, Sections: onCue(untilCue)}, "bert"),
			each(part{Type: leading, Lease: rlock.Watchdog, Sections: onCue(500 * ms)}, "cora")),
		cues: []cue{
			{"alma entered", 0, "go bert"},
			{"bert waiting", watchdogLease, "kill alma"},
			{"bert entered", 500 * ms, "go cora"},
			{"cora waiting", 500 * ms, "go bert"},
		},
		times: map[kind]int{entered: 3, left: 2},
		promises: []promise{
			{"alma killed, bert entered", 0, watchdogLease + slack},
			{"bert leaving, cora entered", 0, slack},
			{story: "alma entered, bert waiting, alma killed, bert entered, cora waiting, " +
				"bert leaving, cora entered, cora leaving"},
		},
	}, {
		// One caller waits while the function runs, and one comes when the result is stored.
		lock: "once", title: "3 callers with one key of package once: one runs",
		cast: slices.Concat(each(part{Type: onceKey, Lease: rlock.Watchdog, Sections: stay()}, "bea"),
			each(part{Type: onceKey, Lease: rlock.Watchdog, Sections: onCue(0)}, "cal", "dot")),
		cues: []cue{
			{"bea entered", 0, "go cal"},
			{"cal waiting", 300 * ms, "go bea"},
			{"bea left", 300 * ms, "go dot"},
		},
		times:    map[kind]int{entered: 1, left: 1, served: 2},
		promises: []promise{{story: "bea entered, cal waiting, bea leaving, cal served, dot served"}},
	}}
	for _, s := range all {
		for i := range s.cast {
			p := &s.cast[i]
			p.Lock, p.Server, p.Data = s.lock, where, prefix+"data"
			p.Wait, p.Lease = cmp.Or(p.Wait, longWait), cmp.Or(p.Lease, rlock.Lease(longWait))
			if p.Names == nil {
				p.Names = []string{s.lock}
			}
			for i := range p.Names {
				p.Names[i] = prefix + p.Names[i]
				if p.Type == onceKey {
					p.Names[i] = oncePrefix + p.Names[i]
				}
				if p.Unlocked {
					p.Names[i] += "/" + p.Process
				}
			}
		}
	}
	return all
}
