package demo

import (
	"slices"
	"time"
)

// state is what a process is doing, as far as its lock is concerned.
type state int

const (
	idle state = iota
	waits
	holds
	reenters // holds at least two levels
	orphaned // is dead, and its lock still held, or its place in the queue kept
	dead
)

// span is a state and the time for which it lasted. The last span of a process has no end yet.
type span struct {
	state state
	from  time.Duration
}

// row is what is known of one process.
type row struct {
	process  string
	lock     string
	owner    string // as Redis knew it when it last held the lock
	spans    []span
	sections int  // entered
	votes    bool // its lock is over a quorum
}

// state is what the process is doing now.
func (r *row) state() state {
	if len(r.spans) == 0 {
		return idle
	}
	return r.spans[len(r.spans)-1].state
}

// stateAt is what the process was doing at the given time.
func (r *row) stateAt(t time.Duration) state {
	s := idle
	for _, span := range r.spans {
		if span.from > t {
			break
		}
		s = span.state
	}
	return s
}

func (r *row) since() time.Duration { return r.spans[len(r.spans)-1].from }

// asked is when it last began to wait.
func (r *row) asked() (t time.Duration) {
	for _, span := range r.spans {
		if span.state == waits {
			t = span.from
		}
	}
	return t
}

func (r *row) become(s state, at time.Duration) {
	r.spans = append(r.spans, span{s, at})
}

// board knows who holds and who waits. It is told events in the order of their time.
type board struct {
	rows   []*row
	free   map[string]release         // by lock: how it last became free, or will
	wakeUp time.Duration              // the longest so far
	vote   time.Duration              // the same over a quorum, where who wakes up may have to ask more than once
	queue  []*row                     // of all locks, first come first; a dead process stays until somebody gets past it
	deaths map[string][]time.Duration // by lock: when servers of its own died
}

// release is the last end of a hold.
type release struct {
	at     time.Duration
	by     string
	killed bool // at is when the holder was killed; the lock stays held for what is left of its lease
}

// passage is how a lock came to a process.
type passage struct {
	from release // zero if nobody had it before
	// took is how long after from it came, if the process was waiting then; else 0.
	took time.Duration
	// past are the dead in the queue whom the lock has passed over.
	past []string
}

func newBoard(parts []part) *board {
	b := &board{free: map[string]release{}, deaths: map[string][]time.Duration{}}
	for _, p := range parts {
		b.rows = append(b.rows, &row{process: p.Process, lock: p.Lock, votes: p.Type == overQuorum})
	}
	return b
}

// row of a process; nil if there is none of that name.
func (b *board) row(process string) *row {
	i := slices.IndexFunc(b.rows, func(r *row) bool { return r.process == process })
	if i < 0 {
		return nil
	}
	return b.rows[i]
}

// apply takes note of e. The passage is that of an entered event, else zero.
func (b *board) apply(e event) (p passage) {
	if e.Kind == died {
		b.deaths[e.Lock] = append(b.deaths[e.Lock], e.At)
	}
	r := b.row(e.Process)
	if r == nil {
		return p
	}
	switch e.Kind {
	case waiting:
		r.become(waits, e.At)
	case queued:
		b.queue = append(b.queue, r)
	case entered:
		b.leaveQueue(r)
		p = b.passage(r, e)
		r.become(holds, e.At)
		r.owner = e.Owner
		r.sections++
	case nested:
		r.become(reenters, e.At)
	case unnested:
		r.become(holds, e.At)
	case leaving:
		b.free[e.Lock] = release{at: e.At, by: e.Process}
		r.become(idle, e.At)
	case gaveUp:
		b.leaveQueue(r)
		r.become(idle, e.At)
	case killed:
		switch s := r.state(); {
		case s == holds, s == reenters:
			b.free[e.Lock] = release{at: e.At, by: e.Process, killed: true}
			r.become(orphaned, e.At)
		case slices.Contains(b.queue, r):
			r.become(orphaned, e.At)
		default:
			r.become(dead, e.At)
		}
	case ready, left, failed, died, ended:
	}
	return p
}

// passage tells how r came to the lock that it enters, and ends the wait for the dead: for the lease of one, for the places
// in the queue of others.
func (b *board) passage(r *row, e event) passage {
	from, ok := b.free[e.Lock]
	if !ok {
		return passage{}
	}
	if from.killed {
		b.row(from.by).become(dead, e.At)
	}
	p := passage{from: from, past: b.bury(r, e)}
	if r.state() == waits && r.since() <= from.at {
		p.took = e.At - from.at
		switch {
		case from.killed, len(p.past) > 0:
		case r.votes:
			b.vote = max(b.vote, p.took)
		default:
			b.wakeUp = max(b.wakeUp, p.took)
		}
	}
	return p
}

// bury takes the dead out of the queue that came before r.
func (b *board) bury(r *row, e event) (names []string) {
	for _, other := range slices.Clone(b.queue) {
		if other.lock == r.lock && other.state() == orphaned && other.asked() < r.asked() {
			b.leaveQueue(other)
			other.become(dead, e.At)
			names = append(names, other.process)
		}
	}
	return names
}

func (b *board) leaveQueue(r *row) {
	b.queue = slices.DeleteFunc(b.queue, func(other *row) bool { return other == r })
}

// queueOf are the names of those who are queued for a lock, first come first.
func (b *board) queueOf(lock string) (names []string) {
	for _, r := range b.queue {
		if r.lock == lock {
			names = append(names, r.process)
		}
	}
	return names
}

// waiters are the names of those who wait for a lock, in the order of the board.
func (b *board) waiters(lock string) (names []string) {
	for _, r := range b.rows {
		if r.lock == lock && r.state() == waits {
			names = append(names, r.process)
		}
	}
	return names
}

// processOf is the name of the process that Redis knows as owner; the owner itself if it is none of ours.
func (b *board) processOf(owner string) string {
	for _, r := range b.rows {
		if r.owner == owner {
			return r.process
		}
	}
	return owner
}

// holders are the names of those who hold a lock: one, if it works, unless they share it.
func (b *board) holders(lock string) (names []string) {
	for _, r := range b.rows {
		if s := r.state(); r.lock == lock && (s == holds || s == reenters) {
			names = append(names, r.process)
		}
	}
	return names
}
