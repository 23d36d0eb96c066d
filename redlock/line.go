package redlock

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"holdfast/pubsub"
)

// line is the local queue for one lock, first come, first served. Only its head asks the nodes; the others would only be
// told the same, and split the vote.
type line struct {
	lines   *queues
	lock    *Lock
	front   *spot                           // guarded by queues.mu; the head
	back    *spot                           // guarded by queues.mu
	subs    map[string]*pubsub.Subscription // guarded by queues.mu; by node (see identify); nil until a head had to wait
	verdict *verdict                        // guarded by queues.mu; of the head's last round
	freeAt  time.Time                       // guarded by queues.mu; when the lease of the last head that got it ends
}

// spot is a waiter's place in a line.
type spot struct {
	line       *line
	prev, next *spot     // guarded by queues.mu; neighbours in line
	head       chan bool // says once that it has got to the head, and whether it should look at once; nil if it was there from the start
}

// queues are the lines of this process. They are of the process and not of a Lock, because any number of those may be made
// of the same nodes.
type queues struct {
	mu         sync.Mutex
	byIdentity map[identity]*line // guarded by mu
}

var lines = queues{byIdentity: make(map[identity]*line)}

// join puts a new waiter at the end of the line for l.
func (qs *queues) join(l *Lock) *spot {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byIdentity[l.identity]
	if q == nil {
		q = &line{lines: qs, lock: l}
		qs.byIdentity[l.identity] = q
	}
	s := &spot{line: q, prev: q.back}
	if q.back == nil {
		q.front = s
	} else {
		q.back.next, s.head = s, make(chan bool, 1)
	}
	q.back = s
	return s
}

// advance waits until the waiter is at the head, and tells whether it should look at once; ok is false if p ended first.
func (s *spot) advance(p *patience) (look, ok bool) {
	if s.head == nil {
		return true, true
	}
	select {
	case look = <-s.head:
		return look, true
	case <-p.over:
	case <-p.ctx.Done():
	}
	return false, false
}

// leave takes the waiter out. If it was the head, the next one becomes it, and looks at once if told to.
func (s *spot) leave(look bool) {
	q := s.line
	q.lines.mu.Lock()
	head := q.front == s
	if head {
		q.front = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.back = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	next := q.front
	if head && next != nil {
		next.head <- look
	}
	var subs map[string]*pubsub.Subscription
	if next == nil {
		delete(q.lines.byIdentity, q.lock.identity)
		subs, q.subs = q.subs, nil
	}
	q.lines.mu.Unlock()
	for _, sub := range subs {
		if sub != nil {
			sub.Close()
		}
	}
}

// note keeps what the head learned, for those who leave without having asked.
func (q *line) note(v *verdict) {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	q.verdict = v
}

func (q *line) last() *verdict {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	return q.verdict
}

// taken notes that the head got the lock, for the next one, which has not asked the nodes: nobody announces the end of a
// lease. What the head learned before is about somebody who does not hold it any more.
func (q *line) taken(lease time.Duration) {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	q.freeAt, q.verdict = time.Now().Add(lease), nil
}

// freeAfter is when the lease that the last head got ends, unless it is renewed.
func (q *line) freeAfter() time.Duration {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	return max(time.Until(q.freeAt), time.Millisecond)
}

// subscriptions are where the head hears of releases, by node, because the locks of those who wait may have their nodes in
// any order. The first call subscribes; the confirmation of each counts as a message, so whatever was announced before is
// looked for.
func (q *line) subscriptions() map[string]*pubsub.Subscription {
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	if q.subs == nil {
		q.subs = make(map[string]*pubsub.Subscription, len(q.lock.nodes))
		for _, node := range q.lock.nodes {
			q.subs[identify(node)] = node.Subscribe()
		}
	}
	return q.subs
}

// listen waits for d, or until so many of l's nodes that refused have announced a release that there may be a quorum; and when
// the first has, for the others not much longer than a round takes. It returns false if p ended before. It is used by the
// head only.
func (q *line) listen(p *patience, l *Lock, v *verdict, d time.Duration) bool {
	timer, end := time.NewTimer(d), time.Now().Add(d)
	defer timer.Stop()
	const fixed = 3
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.over)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.ctx.Done())},
	}
	subs := q.subscriptions()
	for _, i := range v.refusing {
		var c <-chan struct{} // never, if the client is closed
		if sub := subs[identify(l.nodes[i])]; sub != nil {
			c = sub.C()
		}
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	messages := len(cases)
	for i, node := range l.nodes {
		if !slices.Contains(v.closed, i) {
			cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(node.Closing())})
		}
	}
	for heard := 1; ; heard++ {
		chosen, _, _ := reflect.Select(cases)
		switch {
		case chosen == 0, chosen >= messages:
			return true
		case chosen < fixed:
			return false
		case v.free+heard >= l.quorum:
			return true
		}
		cases[chosen].Chan = reflect.ValueOf((<-chan struct{})(nil)) // it has been heard
		if heard == 1 {
			timer.Reset(min(time.Until(end), max(2*v.took, time.Millisecond)))
		}
	}
}
