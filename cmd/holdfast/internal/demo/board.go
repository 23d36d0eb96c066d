package demo

import (
	"slices"
	"time"
)

// state is what a process is doing with its lock.
type state int

const (
	idle state = iota
	waits
	holds
	reenters // holds at least two levels
	orphaned // is dead, and its lock or its place in the queue is still kept
	dead
)

// span is a state and when it began. It lasts until the next span of its process.
type span struct {
	state state
	from  time.Duration
}

// row is what the board knows of one process.
type row struct {
	process  string
	lock     string
	owner    string // as Redis named it when it last held the lock
	spans    []span
	sections int  // entered
	votes    bool // its lock is over a quorum
}

// state returns what the process is doing now.
func (r *row) state() state {
	if len(r.spans) == 0 {
		return idle
	}
	return r.spans[len(r.spans)-1].state
}

// stateAt returns what the process was doing at t.
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

// since returns when its state began.
func (r *row) since() time.Duration { return r.spans[len(r.spans)-1].from }

// asked returns when it last began to wait.
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

// board tracks who holds and who waits. It is fed events in the order of time.
type board struct {
	rows   []*row
	free   map[string]release // by lock: its last release, which may be one to come
	wakeUp time.Duration      // the longest so far
	// the same over a quorum, where a woken waiter may have to ask again
	vote   time.Duration
	queue  []*row                     // of all locks, first come first; see bury
	deaths map[string][]time.Duration // by lock: when servers of its own died
}

// release is how a lock became free.
type release struct {
	at     time.Duration
	by     string
	killed bool // at is when the holder was killed; the lock stays held for the rest of its lease
}

// handover is the way a lock came to a process.
type handover struct {
	from release // zero if it is the first holder
	// took is the time since from.at, if the process was already waiting then; else 0.
	took time.Duration
	// past are the dead processes in the queue that were passed over.
	past []string
}

func newBoard(parts []part) *board {
	b := &board{free: map[string]release{}, deaths: map[string][]time.Duration{}}
	for _, p := range parts {
		b.rows = append(b.rows, &row{process: p.Process, lock: p.Lock, votes: p.Type == overQuorum})
	}
	return b
}

// row returns the row of a process; nil if there is none of that name.
func (b *board) row(process string) *row {
	i := slices.IndexFunc(b.rows, func(r *row) bool { return r.process == process })
	if i < 0 {
		return nil
	}
	return b.rows[i]
}

// apply records e. It returns the hand-over of an entered event, else zero.
func (b *board) apply(e event) (h handover) {
	if e.Kind == died {
		b.deaths[e.Lock] = append(b.deaths[e.Lock], e.At)
	}
	r := b.row(e.Process)
	if r == nil {
		return h
	}
	switch e.Kind {
	case waiting:
		r.become(waits, e.At)
	case queued:
		b.queue = append(b.queue, r)
	case entered:
		b.leaveQueue(r)
		h = b.handover(r, e)
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
	return h
}

// handover returns how the lock that r enters came to it. It ends the wait for the dead: for the
// lease of a dead holder, and for the places in the queue of dead waiters.
func (b *board) handover(r *row, e event) handover {
	from, ok := b.free[e.Lock]
	if !ok {
		return handover{}
	}
	if from.killed {
		b.row(from.by).become(dead, e.At)
	}
	h := handover{from: from, past: b.bury(r, e)}
	if r.state() == waits && r.since() <= from.at {
		h.took = e.At - from.at
		switch {
		case from.killed, len(h.past) > 0:
		case r.votes:
			b.vote = max(b.vote, h.took)
		default:
			b.wakeUp = max(b.wakeUp, h.took)
		}
	}
	return h
}

// bury removes the dead processes ahead of r from the queue, and returns their names.
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

// queueOf returns the names of the processes queued for a lock, first come first.
func (b *board) queueOf(lock string) (names []string) {
	for _, r := range b.queue {
		if r.lock == lock {
			names = append(names, r.process)
		}
	}
	return names
}

// waiters returns the names of the processes that wait for a lock, in the order of the board.
func (b *board) waiters(lock string) (names []string) {
	for _, r := range b.rows {
		if r.lock == lock && r.state() == waits {
			names = append(names, r.process)
		}
	}
	return names
}

// processOf returns the process that Redis knows as owner; the owner itself if it is not of the
// demo.
func (b *board) processOf(owner string) string {
	for _, r := range b.rows {
		if r.owner == owner {
			return r.process
		}
	}
	return owner
}

// holders returns the names of the processes that hold a lock: one, unless they share it or the
// lock fails.
func (b *board) holders(lock string) (names []string) {
	for _, r := range b.rows {
		if s := r.state(); r.lock == lock && (s == holds || s == reenters) {
			names = append(names, r.process)
		}
	}
	return names
}
