package rlock

import (
	"container/list"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/lua"
	"holdfast/pubsub"
)

// lines are the local queues of a client, one for each lock that somebody in this process waits for. Only the head of a
// line asks Redis; the others would only be told the same.
type lines struct {
	wire *wire

	slots [8192]slot

	mu       sync.Mutex
	byName   map[lineName]*line // guarded by mu
	enlisted map[string]*spot   // by owner, those that may have a place in Redis; guarded by mu

	// leaving are owners that are releasing a lock, of those that may hear only now that they were given it. Guarded by mu.
	leaving map[string]struct{}
}

// slot is what can be told without waiting for lines.mu of the locks whose names have the same hash.
type slot struct {
	trying atomic.Int32 // tries under way that stand in no line: of callers that come at the same time only one asks so
	lines  atomic.Int32
}

// line is the local queue for one lock, first come, first served; of a read-write lock there is one for each side, of a
// fair lock one for each waiter. Its fields are guarded by lines.mu.
//
// What the head learns stays with the line: the subscription, with a wake-up that nobody has used yet, and what Redis said
// last. So a new head need not ask again.
type line struct {
	lines   *lines
	call    call
	waiting *list.List           // of *spot; the front is the head
	sub     *pubsub.Subscription // nil until a head had to wait
	holder  lua.Holder           // who has the lock, by the last answer
	freeAt  time.Time            // when it should be free, by the last answer; zero before the first
	lookAt  time.Time            // when the head should look by itself, by the last answer
	overdue *backoff             // between looks at a lease that is over and still in the way; nil if it is not
	failure error                // why the last try got no answer; nil if it did
	denials int                  // how often a try was refused
	denied  bool                 // the last answer was a refusal: who joins now waits for the same as the head
}

// spot is a waiter's place in a line.
type spot struct {
	line    *line
	element *list.Element
	first   bool      // it was at the head from the start
	resumed bool      // it began the line, with a subscription that was there already
	denials int       // the line's when it came, without the refusal that it came to wait behind
	head    chan bool // says that it has got to the head, or once more that it is, and whether it should look at once
	handing           // what may become of it without its asking
}

func newLines(w *wire) *lines {
	return &lines{wire: w, byName: make(map[lineName]*line), enlisted: make(map[string]*spot)}
}

// seed is of the hashes of names.
var seed = maphash.MakeSeed()

// slot is that of a lock.
func (ls *lines) slot(to lineName) *slot {
	return &ls.slots[maphash.String(seed, to.lock)%uint64(len(ls.slots))]
}

// alone tells that nobody waits for the lock, nor tries for it without standing in line, and keeps others from that until
// trying is counted down.
func (s *slot) alone() bool {
	if s.trying.Add(1) > 1 || s.lines.Load() > 0 {
		s.trying.Add(-1)
		return false
	}
	return true
}

// join puts a new waiter at the end of the line that is called like that. With ifAny, which says that there is none, it
// returns nil unless somebody of this process has waited for the lock just now.
func (ls *lines) join(by call, as heir, ifAny bool) *spot {
	if ifAny && !ls.wire.listens() {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	q, resumed := ls.byName[by.line], false
	if q == nil {
		var sub *pubsub.Subscription
		if by.places {
			sub = ls.wire.resume(by)
			resumed = sub != nil
		}
		if sub == nil && ifAny {
			return nil
		}
		q = &line{lines: ls, call: by, waiting: list.New(), sub: sub}
		ls.byName[by.line] = q
		ls.slot(by.line).lines.Add(1)
	}
	s := &spot{line: q, resumed: resumed, first: q.waiting.Len() == 0, denials: q.denials, head: make(chan bool, 1)}
	s.heir, s.gifts = as, make(chan gift, 1)
	if q.denied {
		s.denials--
	}
	s.element = q.waiting.PushBack(s)
	return s
}

// event is what ends a waiter's sleep.
type event int

const (
	over  event = iota // its patience
	heads              // it is at the head
	looks              // it is at the head, and should look
	has                // it was given the lock
)

// await waits until the waiter is at the head, is given the lock, or p ends.
func (s *spot) await(p *patience) (event, gift) {
	select {
	case g := <-s.gifts:
		return has, g
	case look := <-s.head:
		if !look {
			return heads, gift{}
		}
		return looks, gift{}
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	return over, gift{}
}

// park waits at the head until something wakes the waiter, for as long as pause, until it is given the lock, or p ends.
func (s *spot) park(p *patience, pause time.Duration, sub *pubsub.Subscription) (event, gift) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var wake <-chan struct{}
	if sub != nil {
		wake = sub.C()
	}
	select {
	case g := <-s.gifts:
		return has, g
	case <-wake:
		if left := sub.Advice(); left > 0 {
			s.line.advised(time.Duration(left) * time.Millisecond)
			return heads, gift{}
		}
	case <-timer.C:
	case <-s.head:
	case <-p.timeout():
		return over, gift{}
	case <-p.ctx.Done():
		return over, gift{}
	case <-p.closing:
		return over, gift{}
	}
	return looks, gift{}
}

// tell lets a waiter know that it is at the head, and whether it should look. lines.mu must be held.
func (s *spot) tell(look bool) {
	select {
	case unheard := <-s.head:
		look = look || unheard
	default:
	}
	s.head <- look
}

// leave takes the waiter out. If it was the head, the next one becomes it, and looks at once if told to. It returns whether
// the waiter may have something in Redis: a place, or the lock itself.
func (s *spot) leave(look bool) (remains bool) {
	q := s.line
	ls := q.lines
	ls.mu.Lock()
	remains = s.depart()
	head := q.waiting.Front() == s.element
	q.waiting.Remove(s.element)
	next := q.waiting.Front()
	if head && next != nil {
		next.Value.(*spot).tell(look)
	}
	sub := q.sub
	if next == nil {
		delete(ls.byName, q.call.line)
		ls.slot(q.call.line).lines.Add(-1)
		q.sub = nil
	}
	ls.mu.Unlock()
	if next == nil && sub != nil {
		sub.Close()
	}
	return remains
}

// waited tells whether the waiter had to wait: a try was refused since it came, or shortly before and none has succeeded
// since. Its own, or that of the head before it.
func (s *spot) waited() bool {
	s.line.lines.mu.Lock()
	defer s.line.lines.mu.Unlock()
	return s.line.denials > s.denials
}

// refused notes who is in the way.
func (q *line) refused(holder lua.Holder) {
	q.answered(holder)
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	q.denials++
	q.denied = true
}

// answered notes what Redis, or an acquisition of our own, says about the lock.
func (q *line) answered(holder lua.Holder) {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	q.holder, q.failure, q.denied = holder, nil, false
	q.freeAt = time.Now().Add(holder.TTL)
	if holder.TTL == NoExpiry {
		q.freeAt = time.Now().Add(longestPark)
	}
	q.lookAt = q.freeAt
	switch {
	case holder.TTL != 0:
		q.overdue = nil
	case q.overdue == nil:
		q.overdue = &backoff{} // it is over within the millisecond
	default:
		// A replica before Redis 7 that has lost its master shows its scripts what has expired, with nothing left, for ever.
		q.lookAt = time.Now().Add(q.overdue.next())
	}
	if holder.Nap > 0 {
		q.lookAt = time.Now().Add(holder.Nap)
	}
}

// failed notes why Redis gave no answer.
func (q *line) failed(failure error) {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	q.failure = failure
}

// trouble is why nobody in the line knows who has the lock; nil if Redis answers. To whoever asks that has sent nothing,
// so what may have become of the head's commands is left out.
func (q *line) trouble() error {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	failure := q.failure
	if failure == nil && q.freeAt.IsZero() {
		failure = errNoAnswer
	}
	var refusal *ServerError
	if !errors.As(failure, &refusal) {
		return nil // an answer that came too late to be used is one
	}
	if refusal.Class == lua.Unknown {
		unsent := *refusal
		unsent.Class = lua.Temporary
		return &unsent
	}
	return failure
}

// expectation is who has the lock, and for how long still, by the last answer.
func (q *line) expectation() lua.Holder {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	holder := q.holder
	if holder.TTL != NoExpiry {
		holder.TTL = max(0, time.Until(q.freeAt))
	}
	return holder
}

// park is how long the head sleeps if nothing wakes it: until it is worth to look, at most longestPark, and never 0.
func (q *line) park() time.Duration {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	return min(max(time.Until(q.lookAt), time.Millisecond), longestPark)
}

// advised notes that a lease ends after left, which began by a hand-over that only its owner was told of.
func (q *line) advised(left time.Duration) {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	if over := time.Now().Add(left); over.Before(q.lookAt) {
		q.lookAt = over
	}
}

// wakeUps returns the subscription on which the head hears of releases, which the first call makes; nil when the client is
// closed.
func (q *line) wakeUps() *pubsub.Subscription {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	if q.sub == nil {
		q.sub = q.lines.wire.subscribe(q.call)
	}
	return q.sub
}
