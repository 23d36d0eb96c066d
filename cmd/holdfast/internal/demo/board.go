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
	orphaned // is dead, and its lock still held
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
	sections int // entered
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

func (r *row) become(s state, at time.Duration) {
	r.spans = append(r.spans, span{s, at})
}

// board knows who holds and who waits. It is told events in the order of their time.
type board struct {
	rows   []*row
	free   map[string]release // by lock: how it last became free, or will
	wakeUp time.Duration      // the longest so far
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
}

func newBoard(parts []part) *board {
	b := &board{free: map[string]release{}}
	for _, p := range parts {
		b.rows = append(b.rows, &row{process: p.Process, lock: p.Lock})
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
	r := b.row(e.Process)
	if r == nil {
		return p
	}
	switch e.Kind {
	case waiting:
		r.become(waits, e.At)
	case entered:
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
		r.become(idle, e.At)
	case killed:
		if s := r.state(); s == holds || s == reenters {
			b.free[e.Lock] = release{at: e.At, by: e.Process, killed: true}
			r.become(orphaned, e.At)
		}
	case ready, left, failed, ended:
	}
	return p
}

// passage tells how r came to the lock that it enters, and ends the wait for the lease of a dead process.
func (b *board) passage(r *row, e event) passage {
	from, ok := b.free[e.Lock]
	if !ok {
		return passage{}
	}
	if from.killed {
		b.row(from.by).become(dead, e.At)
	}
	p := passage{from: from}
	if r.state() == waits && r.since() <= from.at {
		p.took = e.At - from.at
		if !from.killed {
			b.wakeUp = max(b.wakeUp, p.took)
		}
	}
	return p
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

// holders are the names of those who hold a lock: one, if it works.
func (b *board) holders(lock string) (names []string) {
	for _, r := range b.rows {
		if s := r.state(); r.lock == lock && (s == holds || s == reenters) {
			names = append(names, r.process)
		}
	}
	return names
}
