package waitqueue

import (
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Queues has a client's local queues, by what is waited for. It is safe for concurrent use.
type Queues[Name comparable, Data any] struct {
	seed       maphash.Seed
	slots      atomic.Pointer[[]Slot] // replaced with mu held
	collisions atomic.Int32           // tries and queues that may have met another name
	mu         sync.Mutex
	byName     map[Name]*Queue[Name, Data]    // guarded by mu
	registered map[string]*Waiter[Name, Data] // possibly registered, by owner; guarded by mu
}

// Slot counts tries and queues of the names that share a hash, so that Try need not lock Queues.mu.
// A try that shares its slot with another name costs a queue, and nothing else.
type Slot struct {
	trying atomic.Int32 // callers between Try and EndTry
	queues atomic.Int32
}

// A client begins with few slots, because a process may have thousands of clients that use few
// locks. After some tries that may have met another name it gets many.
const (
	fewSlots       = 512
	manySlots      = 8192
	mostCollisions = 64
)

// Queue is the queue for one name, first come, first served. Its fields are guarded by Queues.mu.
type Queue[Name comparable, Data any] struct {
	all     *Queues[Name, Data]
	name    Name
	waiters *list.List // of *Waiter; the front is the head
	data    Data

	refusals int  // how often a request was refused
	refused  bool // the last reply was a refusal, which also applies to waiters that join now
}

// New returns an empty Queues.
func New[Name comparable, Data any]() *Queues[Name, Data] {
	qs := &Queues[Name, Data]{seed: maphash.MakeSeed(), byName: make(map[Name]*Queue[Name, Data]),
		registered: make(map[string]*Waiter[Name, Data])}
	slots := make([]Slot, fewSlots)
	qs.slots.Store(&slots)
	return qs
}

// slot returns the slot of a name.
func (qs *Queues[Name, Data]) slot(name Name) *Slot {
	slots := *qs.slots.Load()
	return &slots[maphash.Comparable(qs.seed, name)%uint64(len(slots))]
}

// grow replaces few slots by many after some collisions. It is called with mu held. Try and Has may
// miss a try in the old slots, and a queue that is not counted in the new ones yet. That costs a
// request that Redis refuses, or a release that is announced, as if the queue had begun just now.
func (qs *Queues[Name, Data]) grow() {
	if len(*qs.slots.Load()) == manySlots || qs.collisions.Load() < mostCollisions {
		return
	}
	slots := make([]Slot, manySlots)
	qs.slots.Store(&slots)
	for name := range qs.byName {
		qs.slot(name).queues.Add(1)
	}
}

// Try returns nil if others might be waiting or trying. Otherwise the caller asks and calls EndTry.
func (qs *Queues[Name, Data]) Try(name Name) *Slot {
	s := qs.slot(name)
	others, queues := s.trying.Add(1) > 1, s.queues.Load()
	if others && queues == 0 {
		qs.collisions.Add(1)
	}
	if others || queues > 0 {
		s.EndTry()
		return nil
	}
	return s
}

// Has reports whether there is a queue for a name. It may also say so because of another name. It
// takes no mutex, because every release asks.
func (qs *Queues[Name, Data]) Has(name Name) bool { return qs.slot(name).queues.Load() > 0 }

// EndTry ends a successful Try.
func (s *Slot) EndTry() { s.trying.Add(-1) }

// Join appends a new waiter to a queue, for an owner that wants the lock for lease if it is given
// it. If there is no queue, begin makes the data of a new one; if it returns false, Join returns
// nil. begin is called with the queues locked, and must not block.
func (qs *Queues[Name, Data]) Join(
	name Name, owner string, lease time.Duration, begin func() (Data, bool),
) *Waiter[Name, Data] {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		data, ok := begin()
		if !ok {
			return nil
		}
		q = &Queue[Name, Data]{all: qs, name: name, waiters: list.New(), data: data}
		qs.byName[name] = q
		if qs.slot(name).queues.Add(1) > 1 {
			qs.collisions.Add(1)
		}
		qs.grow()
	}
	w := &Waiter[Name, Data]{Owner: owner, Lease: lease, JoinedAsHead: q.waiters.Len() == 0, queue: q,
		refusals: q.refusals, wake: make(chan struct{}, 1), state: Waiting}
	if q.refused {
		w.refusals--
	}
	w.element = q.waiters.PushBack(w)
	return w
}

// head returns the first waiter of a queue; nil if there is no queue or no waiter.
func (q *Queue[Name, Data]) head() *Waiter[Name, Data] {
	if q == nil || q.waiters.Len() == 0 {
		return nil
	}
	return q.waiters.Front().Value.(*Waiter[Name, Data])
}

// Do calls f with the data of the queue, under the mutex that guards it. f must not block.
func (q *Queue[Name, Data]) Do(f func(*Data)) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	f(&q.data)
}

// Answered records whether the head was refused last; also false if a waiter acquired the lock.
func (q *Queue[Name, Data]) Answered(refused bool) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.refused = refused
	if refused {
		q.refusals++
	}
}

// Waiter is one caller in a queue. Others only read the exported fields, which do not change.
type Waiter[Name comparable, Data any] struct {
	Owner        string
	Lease        time.Duration // of the lock that it is given
	JoinedAsHead bool

	queue    *Queue[Name, Data]
	element  *list.Element
	refusals int           // Queue.refusals when it joined, without one that also applies to it
	wake     chan struct{} // signals that there is a reason

	// Guarded by Queues.mu.
	state      State
	registered bool      // the server may have a registration of it
	ticket     Ticket    // of its registration when it last asked; 0 if that is not certain
	asked      time.Time // when the request with this ticket was sent
	reason     Reason    // why it was woken
	given      Grant     // while Granted; also a grant that arrived while it asked
	unread     []Message // arrived while its ticket was not certain
	late       bool      // a release that names it may still be executed at any time
}

// Remains says what a caller may have left on the server: the lock, a registration, a queue entry.
type Remains uint8

// What remains, ordered: a greater value includes the smaller ones.
const (
	Nothing Remains = iota
	Something
	Late // also by a command that may still be executed at any time
)

// Queue returns the queue of the waiter.
func (w *Waiter[Name, Data]) Queue() *Queue[Name, Data] { return w.queue }

// State returns the state of the waiter, and why it is about to wake up; [Ended] if it is not.
func (w *Waiter[Name, Data]) State() (State, Reason) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.state, w.reason
}

// Waited reports whether the waiter had to wait: since it joined, a request was refused, its own or
// that of a head before it. It also had to if the last request before it joined was refused.
func (w *Waiter[Name, Data]) Waited() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.refusals > w.refusals
}

// Leave removes the waiter from its queue, with the lock or without it. If it was the head, the
// next one becomes head, and asks at once if retry is set. Leave returns what may remain on the
// server. The last waiter ends the queue and gets its data; the others get nil.
func (w *Waiter[Name, Data]) Leave(acquired, retry bool) (r Remains, last *Data) {
	q, qs := w.queue, w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	e := leave
	switch {
	case acquired:
		e = acquire
	case w.late:
		r = Late
	case w.registered:
		r = Something
	}
	w.state.step(e)
	delete(qs.registered, w.Owner)
	before := q.head()
	q.waiters.Remove(w.element)
	switch next := q.head(); {
	case next == nil:
		delete(qs.byName, q.name)
		qs.slot(q.name).queues.Add(-1)
		return r, &q.data
	case next == before:
	case retry:
		next.wakeFor(Retry)
	default:
		next.wakeFor(BecameHead)
	}
	return r, nil
}

// Waiters counts the waiters, and the refusals of requests, in the queues whose names match.
func (qs *Queues[Name, Data]) Waiters(matches func(Name) bool) (n, refusals int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for name, q := range qs.byName {
		if matches(name) {
			n, refusals = n+q.waiters.Len(), refusals+q.refusals
		}
	}
	return n, refusals
}
