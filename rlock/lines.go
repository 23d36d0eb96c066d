package rlock

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"holdfast/lua"
	"holdfast/pubsub"
)

// lines are the local queues of a client, one for each lock that somebody in this process waits for. Only the head of a
// line asks Redis; the others would only be told the same.
type lines struct {
	wire *wire

	mu     sync.Mutex
	byName map[string]*line // guarded by mu
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
	denials int       // the line's when it came, without the refusal that it came to wait behind
	head    chan bool // says once that it has got to the head, and whether it should look at once
}

func newLines(w *wire) *lines {
	return &lines{wire: w, byName: make(map[string]*line)}
}

// join puts a new waiter at the end of the line that is called like that.
func (ls *lines) join(by call) *spot {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	q := ls.byName[by.line]
	if q == nil {
		q = &line{lines: ls, call: by, waiting: list.New()}
		ls.byName[by.line] = q
	}
	s := &spot{line: q, first: q.waiting.Len() == 0, denials: q.denials}
	if q.denied {
		s.denials--
	}
	if !s.first {
		s.head = make(chan bool, 1)
	}
	s.element = q.waiting.PushBack(s)
	return s
}

// advance waits until the waiter is at the head, and tells whether it should look at once; ok is false if p ended first.
func (s *spot) advance(p *patience) (look, ok bool) {
	if s.first {
		return true, true
	}
	select {
	case look = <-s.head:
		return look, true
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	return false, false
}

// leave takes the waiter out. If it was the head, the next one becomes it, and looks at once if told to.
func (s *spot) leave(look bool) {
	q := s.line
	q.lines.mu.Lock()
	head := q.waiting.Front() == s.element
	q.waiting.Remove(s.element)
	next := q.waiting.Front()
	if head && next != nil {
		next.Value.(*spot).head <- look
	}
	sub := q.sub
	if next == nil {
		delete(q.lines.byName, q.call.line)
		q.sub = nil
	}
	q.lines.mu.Unlock()
	if next == nil && sub != nil {
		sub.Close()
	}
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

// wakeUps is where the head hears of releases. The first call subscribes. It is nil, and never fires, when the client is
// closed.
func (q *line) wakeUps() <-chan struct{} {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	if q.sub == nil {
		if q.sub = q.lines.wire.subscribe(q.call); q.sub == nil {
			return nil
		}
	}
	return q.sub.C()
}
