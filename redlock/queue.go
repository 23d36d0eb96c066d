package redlock

import (
	"reflect"
	"slices"
	"time"

	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/pubsub"
	"holdfast/rlock"
)

// longestPause is how long a waiter sleeps at most before it asks by itself. It bounds the harm of
// a message that never comes.
const longestPause = 5 * time.Second

// splits is how many rounds may fail without anybody having a quorum before that is taken for more
// than bad luck: somebody holds the lock under a name on each node, as Redisson does.
const maxSplitVotes = 5

// queues are the local queues of this process, by lock. They are of the process and not of a Lock,
// because any number of those may be made of the same nodes. Only the head of a queue asks the
// nodes; the others would be told the same, and split the vote.
var queues = waitqueue.New[identity, known]()

// known is what the head of a queue has learned. The queue guards it.
type known struct {
	subs   map[string]*pubsub.Subscription // by node (see identify); nil until a head had to wait
	result *result                         // of the head's last round; nil before the first
	freeAt time.Time                       // when the lease of the last head that acquired it ends
}

type (
	lockQueue = waitqueue.Queue[identity, known]
	waiter    = waitqueue.Waiter[identity, known]
)

// queue waits until this attempt is at the head of its queue, and then asks whenever there is a
// reason to.
func (at *attempt) queue() (*rlock.Hold, error) {
	w := queues.Join(
		at.lock.identity,
		waitqueue.Candidate{},
		func() (known, bool) { return known{}, true },
	)
	q, ask := w.Queue(), true
	if !w.First {
		reason, _ := w.Wait(at.budget)
		if reason == waitqueue.Ended {
			q.Do(func(k *known) { at.last = k.result })
			leave(w, true)
			return nil, at.failure()
		}
		ask = reason == waitqueue.Retry
	}
	var delay wait.Backoff
	for {
		if ask {
			if hold := at.round(); hold != nil {
				// What the head learned before is about somebody who does not hold it any more.
				// Nobody announces the end of a lease to the next one, which has not asked the
				// nodes.
				q.Do(func(k *known) { k.freeAt, k.result = time.Now().Add(at.lease), nil })
				leave(w, false) // the next in the queue waits for us
				return hold, nil
			}
			q.Do(func(k *known) { k.result = at.last }) // for those who leave without having asked
			if at.last.permanent {
				leave(w, true)
				return nil, at.failure()
			}
		} else {
			// Somebody of this process has just acquired it.
			at.last = &result{err: &QuorumError{Lock: at.lock.name, Want: at.lock.quorum}, held: true,
				refusing: allNodes(at.lock)}
			q.Do(func(k *known) { at.last.freeAfter = max(time.Until(k.freeAt), time.Millisecond) })
		}
		if at.last.held {
			delay = wait.Backoff{}
		}
		if !at.pause(q, &delay) {
			leave(w, true)
			return nil, at.failure()
		}
		ask = true
	}
}

// leave takes a waiter out of its queue, and ends what the queue listens to with the last one. The
// next head asks at once if retry is set.
func leave(w *waiter, retry bool) {
	_, over := w.Leave(retry)
	if over == nil {
		return
	}
	for _, sub := range over.subs {
		if sub != nil {
			sub.Close()
		}
	}
}

// all returns the indexes of the nodes.
func allNodes(l *Lock) []int {
	indexes := make([]int, len(l.nodes))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// pause waits until it is worth asking again, and returns false if the budget ended before.
//
// When somebody has the lock that is when enough nodes announce that they are free, or when leases
// should be over. When nobody has it, the vote was split or nodes are missing, and it is a random
// time, during which nothing is heard: what the others announce is their own release, and whoever
// followed it would meet them again.
func (at *attempt) pause(q *lockQueue, delay *wait.Backoff) bool {
	r := at.last
	after := roundBackoff(delay, r.took)
	if !r.held && delay.Failures < maxSplitVotes {
		return at.budget.Sleep(after, nil, nil)
	}
	if r.held {
		after = longestPause
		if r.freeAfter > 0 {
			after = min(after, r.freeAfter)
		}
	}
	return at.listen(q, r, after)
}

// roundBackoff returns the delay between rounds that fail for no other's unlocking: longer than a
// round, and twice as long each time.
func roundBackoff(b *wait.Backoff, round time.Duration) time.Duration {
	return b.Within(2*max(round, time.Millisecond), 2*time.Second)
}

// subscriptions returns where the head hears of releases, by node, because the locks of those who
// wait may have their nodes in any order. The first call subscribes; the confirmation of each
// counts as a message, so whatever was announced before is looked for.
func (at *attempt) subscriptions(q *lockQueue) (subs map[string]*pubsub.Subscription) {
	q.Do(func(k *known) {
		if k.subs == nil {
			k.subs = make(map[string]*pubsub.Subscription, len(at.lock.nodes))
			for _, node := range at.lock.nodes {
				k.subs[nodeID(node)] = node.Subscribe()
			}
		}
		subs = k.subs
	})
	return subs
}

// listen waits for d, or until so many of the nodes that refused have announced a release that
// there may be a quorum; and when the first has, for the others not much longer than a round takes.
// It returns false if the budget ended before. It is used by the head only.
func (at *attempt) listen(q *lockQueue, r *result, d time.Duration) bool {
	timer, end := time.NewTimer(at.budget.Left(d)), time.Now().Add(d)
	defer timer.Stop()
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(at.budget.Ctx.Done())},
	}
	subs := at.subscriptions(q)
	for _, i := range r.refusing {
		var c <-chan struct{} // never, if the client is closed
		if sub := subs[nodeID(at.lock.nodes[i])]; sub != nil {
			c = sub.C()
		}
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	messages := len(cases)
	for i, node := range at.lock.nodes {
		if !slices.Contains(r.closed, i) {
			cases = append(
				cases,
				reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(node.Closing())},
			)
		}
	}
	for heard := 1; ; heard++ {
		chosen, _, _ := reflect.Select(cases)
		switch {
		case chosen == 1, at.budget.Over():
			return false
		case chosen == 0, chosen >= messages, r.free+heard >= at.lock.quorum:
			return true
		}
		cases[chosen].Chan = reflect.ValueOf((<-chan struct{})(nil)) // it has been heard
		if heard == 1 {
			timer.Reset(at.budget.Left(min(time.Until(end), max(2*r.took, time.Millisecond))))
		}
	}
}
