package waitqueue

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// Queues has the local queues of a client, by name. It is safe for concurrent use.
type Queues[Name comparable, Data any] struct {
	seed       maphash.Seed
	slots      atomic.Pointer[[]Slot] // replaced with mu held
	collisions atomic.Int32           // tries and queues that may have met another name
	mu         sync.Mutex
	byName     map[Name]*Queue[Name, Data]    // guarded by mu
	registered map[string]*Waiter[Name, Data] // possibly registered, by owner; guarded by mu
	recycles   bool                           // constant, see Recycle
	wakes      sync.Pool                      // of chan struct{}, empty, of waiters that have left
}

// Slot counts the tries and queues of all names with the same hash, so that Try need not lock
// Queues.mu. If a try shares its slot with another name, the caller joins a queue instead.
type Slot struct {
	trying atomic.Int32 // callers between Try and EndTry
	queues atomic.Int32
}

// A client begins with few slots, because a process may have thousands of clients that use few
// locks. The client gets more slots each time that some tries may have met another name.
const (
	fewestSlots    = 32
	growth         = 16
	mostSlots      = fewestSlots * growth * growth
	mostCollisions = 64
)

// Queue is the first-come, first-served queue for one name. Queues.mu guards its fields.
type Queue[Name comparable, Data any] struct {
	all         *Queues[Name, Data]
	name        Name
	first, last *Waiter[Name, Data] // the first one is the head; nil without waiters
	data        Data

	refusals int  // the number of refused requests
	refused  bool // the last reply was a refusal, which also applies to waiters that join now
}

// New returns an empty Queues.
func New[Name comparable, Data any]() *Queues[Name, Data] {
	qs := &Queues[Name, Data]{seed: maphash.MakeSeed(), byName: make(map[Name]*Queue[Name, Data]),
		registered: make(map[string]*Waiter[Name, Data])}
	slots := make([]Slot, fewestSlots)
	qs.slots.Store(&slots)
	return qs
}

// Recycle makes the waiters use the channels of waiters that have left, and returns qs. Call
// Recycle before the first waiter joins. In tests, all waiters must then be in the same bubble of
// testing/synctest.
func (qs *Queues[Name, Data]) Recycle() *Queues[Name, Data] {
	qs.recycles = true
	return qs
}

// slot returns the slot of a name.
func (qs *Queues[Name, Data]) slot(name Name) *Slot {
	slots := *qs.slots.Load()
	return &slots[maphash.Comparable(qs.seed, name)%uint64(len(slots))]
}

// grow replaces the slots by more after some collisions. The caller holds mu. Try and Has may miss
// a try in the old slots, and a queue that the new slots do not count yet. A missed queue costs a
// refused request or an announced release, as if the queue had begun just now.
func (qs *Queues[Name, Data]) grow() {
	size := len(*qs.slots.Load())
	if size == mostSlots || qs.collisions.Load() < mostCollisions {
		return
	}
	qs.collisions.Store(0)
	slots := make([]Slot, size*growth)
	qs.slots.Store(&slots)
	for name := range qs.byName {
		qs.slot(name).queues.Add(1)
	}
}

// Try returns nil if others might wait or try. Otherwise the caller asks the server and calls
// EndTry.
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

// Has reports whether there is a queue for a name, or for another name in the same slot. Has takes
// no mutex, because every release calls Has.
func (qs *Queues[Name, Data]) Has(name Name) bool { return qs.slot(name).queues.Load() > 0 }

// EndTry ends a successful Try.
func (s *Slot) EndTry() { s.trying.Add(-1) }

// Join appends a new waiter to a queue. owner is the owner's name in Redis, and lease is the lease
// that the waiter wants with a grant. If there is no queue, begin makes the data of a new queue. If
// begin returns false, Join returns nil. Join calls begin with the queues locked, so begin must not
// block.
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
		q = &Queue[Name, Data]{all: qs, name: name, data: data}
		qs.byName[name] = q
		if qs.slot(name).queues.Add(1) > 1 {
			qs.collisions.Add(1)
		}
		qs.grow()
	}
	wake, _ := qs.wakes.Get().(chan struct{})
	if wake == nil {
		wake = make(chan struct{}, 1)
	}
	w := &Waiter[Name, Data]{Owner: owner, Lease: lease, JoinedAsHead: q.first == nil, queue: q,
		refusals: q.refusals, wake: wake, state: Waiting}
	if q.refused {
		w.refusals--
	}
	q.append(w)
	return w
}

// head returns the first waiter of a queue; nil if there is no queue or no waiter.
func (q *Queue[Name, Data]) head() *Waiter[Name, Data] {
	if q == nil {
		return nil
	}
	return q.first
}

// append adds a waiter to the end of the list. The waiters themselves are the list, because a hot
// lock has a new waiter for each acquisition, and container/list would allocate once more for each.
func (q *Queue[Name, Data]) append(w *Waiter[Name, Data]) {
	w.before = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.behind = w
	}
	q.last = w
}

// remove removes a waiter from the list.
func (q *Queue[Name, Data]) remove(w *Waiter[Name, Data]) {
	if w.before == nil {
		q.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		q.last = w.before
	} else {
		w.behind.before = w.before
	}
	w.before, w.behind = nil, nil
}

// Do calls f with the data of the queue, and holds the mutex that guards the data. f must not
// block.
func (q *Queue[Name, Data]) Do(f func(*Data)) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	f(&q.data)
}

// Answered records whether the last request was refused. refused is false if a waiter acquired the
// lock.
func (q *Queue[Name, Data]) Answered(refused bool) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.refused = refused
	if refused {
		q.refusals++
	}
}

// Waiter is a caller in a queue. The exported fields do not change.
type Waiter[Name comparable, Data any] struct {
	Owner        string
	Lease        time.Duration // of a grant
	JoinedAsHead bool

	queue    *Queue[Name, Data]
	before   *Waiter[Name, Data] // in the list of the queue, as behind; guarded by Queues.mu
	behind   *Waiter[Name, Data]
	refusals int           // Queue.refusals before the waiter, to count refusals since then
	wake     chan struct{} // signals a reason to wake up; nil once it is recycled

	// Guarded by Queues.mu.
	state      State
	registered bool      // the server may have a registration of the waiter
	ticket     Ticket    // of the latest registration; 0 if the ticket is not certain
	asked      time.Time // when the request with this ticket was sent
	reason     Reason    // why the waiter was woken
	given      Grant     // while Granted, or while Asking if a grant has arrived
	turns      bool      // the waiter takes turns, and nothing of it is on the server
	unread     []Message // messages that arrived while the ticket was not certain
	late       bool      // the server may still execute a release that names the waiter
}

// Remains says what a caller may have left on the server, such as the lock, a registration or a
// queue entry.
type Remains uint8

// The values are ordered. A greater value includes the smaller values.
const (
	Nothing Remains = iota
	Something
	Late // the server may still execute a command that leaves something
)

// Queue returns the queue of the waiter.
func (w *Waiter[Name, Data]) Queue() *Queue[Name, Data] { return w.queue }

// State returns the state of the waiter, and the reason if the waiter is about to wake up.
// Otherwise the reason is [Ended].
func (w *Waiter[Name, Data]) State() (State, Reason) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.state, w.reason
}

// Waited reports whether the waiter had to wait. A waiter had to wait if a request was refused
// since the waiter joined, or if the last request before that was refused. The request may be the
// waiter's own or the request of an earlier head.
func (w *Waiter[Name, Data]) Waited() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.refusals > w.refusals
}

// Leave removes the waiter from its queue, with or without the lock. If the waiter was the head,
// the next waiter becomes the head. With retry, the new head asks at once. Leave returns what may
// remain on the server. The last waiter ends the queue and gets the data of the queue, and the
// others get nil.
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
	if acquired {
		w.given = Grant{}
	}
	w.state.step(e)
	delete(qs.registered, w.Owner)
	before := q.head()
	q.remove(w)
	if qs.recycles { // nobody wakes a waiter that has left
		wait.Fired(w.wake)
		qs.wakes.Put(w.wake)
		w.wake = nil
	}
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

// Waiters counts the waiters and the refused requests of all queues with a matching name.
func (qs *Queues[Name, Data]) Waiters(matches func(Name) bool) (n, refusals int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for name, q := range qs.byName {
		if !matches(name) {
			continue
		}
		refusals += q.refusals
		for w := q.first; w != nil; w = w.behind {
			n++
		}
	}
	return n, refusals
}
