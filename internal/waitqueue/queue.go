package waitqueue

import (
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// Queues are the local queues of a client, by the name of what is waited for. Data is what each of
// them knows about that. All methods are safe for concurrent use.
type Queues[Name comparable, Data any] struct {
	slots [8192]slot

	mu         sync.Mutex
	byName     map[Name]*Queue[Name, Data]    // guarded by mu
	registered map[string]*Waiter[Name, Data] // by owner, those that may be registered; guarded by mu
}

// slot is what can be told about names of the same hash without locking Queues.mu.
type slot struct {
	trying atomic.Int32 // callers of Try that have not ended it
	queues atomic.Int32
}

// Queue is the queue for one name, first come, first served. Its fields are guarded by Queues.mu.
type Queue[Name comparable, Data any] struct {
	all     *Queues[Name, Data]
	name    Name
	waiters *list.List // of *Waiter; the front is the head
	data    Data

	refusals int  // how often a request was refused
	refused  bool // the last answer was a refusal: who joins now waits for the same as the head
}

// New returns no queues.
func New[Name comparable, Data any]() *Queues[Name, Data] {
	return &Queues[Name, Data]{byName: make(map[Name]*Queue[Name, Data]),
		registered: make(map[string]*Waiter[Name, Data])}
}

// seed is of the hashes of names.
var seed = maphash.MakeSeed()

func (qs *Queues[Name, Data]) slot(name Name) *slot {
	return &qs.slots[maphash.Comparable(seed, name)%uint64(len(qs.slots))]
}

// Try returns true if nobody waits for the name, nor tries without waiting: then the caller is the
// one who does, until EndTry. Of callers that come at the same time only one gets true.
func (qs *Queues[Name, Data]) Try(name Name) bool {
	s := qs.slot(name)
	if s.trying.Add(1) > 1 || s.queues.Load() > 0 {
		s.trying.Add(-1)
		return false
	}
	return true
}

// EndTry ends what Try has begun.
func (qs *Queues[Name, Data]) EndTry(name Name) { qs.slot(name).trying.Add(-1) }

// Join puts a new waiter at the end of a queue. If there is none, begin makes the data of a new
// one, or returns false: then there is no waiter, and Join returns nil. begin is called with the
// queues locked, and must not block.
func (qs *Queues[Name, Data]) Join(
	name Name,
	c Candidate,
	begin func() (Data, bool),
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
		qs.slot(name).queues.Add(1)
	}
	w := &Waiter[Name, Data]{queue: q, Candidate: c, First: q.waiters.Len() == 0,
		refusals: q.refusals, wake: make(chan struct{}, 1)}
	if q.refused {
		w.refusals--
	}
	w.element = q.waiters.PushBack(w)
	return w
}

// Do calls f with the data of a queue, while nobody else has it. f must not block.
func (q *Queue[Name, Data]) Do(f func(*Data)) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	f(&q.data)
}

// Answered notes what a request of the head was answered, or that somebody of this process has
// acquired the lock without being refused.
func (q *Queue[Name, Data]) Answered(refused bool) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.refused = refused
	if refused {
		q.refusals++
	}
}

// Candidate is who waits, as far as that is of interest to those who release.
type Candidate struct {
	Owner string
	Lease time.Duration // that it is given with the lock
}

// Waiter is one caller in a queue. It is used by that caller's goroutine.
type Waiter[Name comparable, Data any] struct {
	Candidate
	First bool // it was at the head from the start

	queue    *Queue[Name, Data]
	element  *list.Element
	refusals int // the queue's when it came, without the one that it waits behind
	wake     chan struct{}

	// Guarded by Queues.mu.
	state        State
	registration Registration
	ticket       Ticket    // of a Registered waiter
	asked        time.Time // when the request was sent that was answered with the ticket
	reason       Reason    // why it was woken
	given        Grant     // while Granted; also what came while it asked
	unread       []Message // came while its ticket was not known for sure
	late         bool      // a release that names it may be executed at any time
}

// Remains is what a waiter that leaves may have on the server: the lock itself, or a registration.
type Remains uint8

// The least first.
const (
	Nothing Remains = iota
	Something
	Late // also by a release that may be executed at any time
)

// Reason is why a waiter was woken.
type Reason uint8

// The reasons, the least first.
const (
	Ended      Reason = iota // its budget has
	Paused                   // its pause is over, or something else has woken it
	BecameHead               // it is at the head, and nothing says that the lock may be free
	Retry                    // it is at the head, and should ask
	HasGrant                 // it was given the lock
)

// Queue returns the queue of the waiter.
func (w *Waiter[Name, Data]) Queue() *Queue[Name, Data] { return w.queue }

// Wait waits until the waiter is woken or b ends. A waiter that is not at the head is woken when it
// is, or when it is given the lock; a head also when there is a reason to ask.
func (w *Waiter[Name, Data]) Wait(b *wait.Budget) (Reason, Grant) {
	if !b.Wait(w.wake) {
		return Ended, Grant{}
	}
	return w.woken()
}

// Park is Wait for a head, which also wakes after a pause, or when the other channel wakes it.
func (w *Waiter[Name, Data]) Park(
	b *wait.Budget,
	pause time.Duration,
	also <-chan struct{},
) (Reason, Grant) {
	if !b.Sleep(pause, w.wake, also) {
		return Ended, Grant{}
	}
	reason, g := w.woken()
	return max(reason, Paused), g
}

// woken takes the reason for which the waiter was woken.
func (w *Waiter[Name, Data]) woken() (Reason, Grant) {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	reason := w.reason
	w.reason = Ended
	w.clearSignal()
	if w.state == Granted {
		return HasGrant, w.given
	}
	return reason, Grant{}
}

// wakeFor wakes the waiter. qs.mu must be held.
func (w *Waiter[Name, Data]) wakeFor(r Reason) {
	w.reason = max(w.reason, r)
	w.signal()
}

// signal has Wait and Park return. qs.mu must be held.
func (w *Waiter[Name, Data]) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// clearSignal takes signal back, unless there is a reason left. qs.mu must be held.
func (w *Waiter[Name, Data]) clearSignal() {
	if w.reason != Ended {
		return
	}
	select {
	case <-w.wake:
	default:
	}
}

// Waited reports whether the waiter had to wait: a request was refused since it came, its own or
// that of a head before it; or shortly before it came, and none has succeeded since.
func (w *Waiter[Name, Data]) Waited() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.refusals > w.refusals
}

// Leave takes the waiter out. If it was the head, the next one becomes that, and asks at once if
// retry is set. It returns what may remain on the server. The last to leave gets the data of the
// queue, which is over; others get nil.
func (w *Waiter[Name, Data]) Leave(retry bool) (r Remains, over *Data) {
	q := w.queue
	qs := q.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	switch {
	case w.state == Acquired:
	case w.late:
		r = Late
	case w.registration != Unregistered, w.state == Granted:
		r = Something
	}
	w.state.step(leave)
	delete(qs.registered, w.Owner)
	head := q.waiters.Front() == w.element
	q.waiters.Remove(w.element)
	next := q.waiters.Front()
	switch {
	case next == nil:
		delete(qs.byName, q.name)
		qs.slot(q.name).queues.Add(-1)
		return r, &q.data
	case head && retry:
		next.Value.(*Waiter[Name, Data]).wakeFor(Retry)
	case head:
		next.Value.(*Waiter[Name, Data]).wakeFor(BecameHead)
	}
	return r, nil
}

// Len returns how many queues there are.
func (qs *Queues[Name, Data]) Len() int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(qs.byName)
}

// Waiters returns how many waiters there are in the queues whose names match.
func (qs *Queues[Name, Data]) Waiters(matches func(Name) bool) (n int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for name, q := range qs.byName {
		if matches(name) {
			n += q.waiters.Len()
		}
	}
	return n
}

// Refusals returns how often those who wait in a queue have been refused.
func (qs *Queues[Name, Data]) Refusals(name Name) int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[name]; q != nil {
		return q.refusals
	}
	return 0
}
