package redlock

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"time"

	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/pubsub"
	"holdfast/rlock"
)

// queues has the local queues of this process; like sessions it belongs to no Lock. Only the head
// of a queue asks the nodes: others would get the same replies, and split the vote.
var queues = waitqueue.New[identity, known]()

// known holds what the heads of a queue have learned. The queue guards it.
type known struct {
	// subs is by nodeID, because the order of the nodes may differ. It is empty until a head waits.
	subs   map[string]*pubsub.Subscription
	result *result   // of the last round; nil before the first
	freeAt time.Time // when the lease of the last head that acquired it ends
}

// queue waits until the attempt is the head, and then runs a round whenever the lock may be free.
func (at *attempt) queue() (*rlock.Hold, error) {
	w := queues.Join(at.lock.identity, "", 0, func() (known, bool) {
		return known{subs: make(map[string]*pubsub.Subscription)}, true
	})
	nextAsks := true // at once when it becomes the head
	defer func() {
		if _, last := w.Leave(false, nextAsks); last != nil {
			for _, sub := range last.subs {
				sub.Close()
			}
		}
	}()
	q, ask := w.Queue(), true
	if !w.JoinedAsHead {
		at.trace.WaitStart()
		reason, _ := w.Wait(at.budget)
		if reason == waitqueue.Ended {
			q.Do(func(k *known) { at.last = k.result })
			return nil, at.failure()
		}
		ask = reason == waitqueue.Retry
	}
	at.trace.Heads()
	for delay := (wait.Backoff{}); ; ask = true {
		if ask {
			if hold := at.round(); hold != nil {
				// The last result concerns an earlier holder. The next head has not asked the
				// nodes, and no message announces the end of our lease: it needs freeAt.
				q.Do(func(k *known) { k.freeAt, k.result = time.Now().Add(at.lease), nil })
				nextAsks = false // it waits for our release
				return hold, nil
			}
			q.Do(func(k *known) { k.result = at.last }) // for waiters that leave without a round
		} else {
			// The previous head has just acquired the lock.
			err := &QuorumError{Lock: at.lock.name, Want: at.lock.quorum}
			nodes := slices.Repeat([]error{&rlock.HeldError{}}, len(at.lock.nodes))
			at.last = &result{held: true, err: err, nodes: nodes}
			q.Do(func(k *known) { at.last.freeAfter = max(time.Until(k.freeAt), time.Millisecond) })
		}
		if at.last.permanent {
			return nil, at.failure()
		}
		at.trace.WaitStart()
		if !at.pause(q, &delay) {
			return nil, at.failure()
		}
	}
}

// pause waits until another round may succeed. It returns false if the budget ended first.
//
// If one owner has the lock, that is when enough nodes announce a release, or when leases should
// have ended. Otherwise the vote was split or nodes are missing, and pause sleeps for a random
// time. It ignores messages then: a contender that followed them would collide with others again.
func (at *attempt) pause(q *waitqueue.Queue[identity, known], delay *wait.Backoff) bool {
	// longestPause is how long the head of a queue sleeps when a message never arrives.
	const longestPause = 5 * time.Second
	// maxSplitVotes is how many rounds without a quorum for any owner count as bad luck. After that
	// an owner probably has another name on each node, as in Redisson: listen for its release.
	const maxSplitVotes = 5
	r := at.last
	if r.held {
		*delay = wait.Backoff{}
		return at.listen(q, min(longestPause, cmp.Or(r.freeAfter, longestPause)))
	}
	after := roundBackoff(delay, r.took)
	if delay.Failures < maxSplitVotes {
		return at.budget.Sleep(after, nil, nil)
	}
	return at.listen(q, after)
}

// roundBackoff returns the delay before the next round when no release is awaited: longer than a
// round, and twice as long each time.
func roundBackoff(b *wait.Backoff, round time.Duration) time.Duration {
	return b.Within(2*max(round, time.Millisecond), 2*time.Second)
}

// listen waits for d, or until enough of the refusing nodes have announced a release for a quorum.
// After the first announcement it waits for the others for about two rounds at most. A client that
// closes ends the wait as well. It returns false if the budget ended first. Only the head calls it.
//
// The first call of a queue subscribes. The confirmation of a subscription counts as a message,
// which makes the head ask for what was announced before.
func (at *attempt) listen(q *waitqueue.Queue[identity, known], d time.Duration) bool {
	r := at.last
	timer, end := time.NewTimer(at.budget.Left(d)), time.Now().Add(d)
	defer timer.Stop()
	cases := receiveAny(receiveAny(nil, timer.C), at.budget.Ctx.Done())
	q.Do(func(k *known) {
		for i, node := range at.lock.nodes {
			sub := k.subs[nodeID(node)]
			if sub == nil {
				sub = node.Subscribe()
				if sub == nil {
					continue // the kind of a cluster's channels is not known yet
				}
				k.subs[nodeID(node)] = sub
			}
			// The other nodes may announce the release of our own failed round.
			if heldError(r.nodes[i]) != nil {
				cases = receiveAny(cases, sub.C())
			}
		}
	})
	messages := len(cases)
	for i, node := range at.lock.nodes {
		if !errors.Is(r.nodes[i], rlock.ErrClosed) { // any client that closes later is news
			cases = receiveAny(cases, node.Closing())
		}
	}
	for heard := 1; ; heard++ {
		chosen, _, _ := reflect.Select(cases)
		switch {
		case chosen == 1, at.budget.Over():
			return false
		case chosen == 0, chosen >= messages, r.err.Granted+heard >= at.lock.quorum:
			return true
		}
		cases[chosen].Chan = reflect.Value{} // count each node once
		if heard == 1 {
			timer.Reset(at.budget.Left(min(time.Until(end), max(2*r.took, time.Millisecond))))
		}
	}
}

// receiveAny adds a channel to the cases of a [reflect.Select].
func receiveAny[T any](cases []reflect.SelectCase, from <-chan T) []reflect.SelectCase {
	return append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(from)})
}
