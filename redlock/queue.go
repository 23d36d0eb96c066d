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

// queues has the local queues of this process. Like sessions, queues belongs to no Lock. Only the
// head of a queue asks the nodes, because others would get the same replies, and split the vote.
var queues = waitqueue.New[identity, known]()

// known holds what the heads of a queue have learned. The queue guards it.
type known struct {
	// subs is by nodeID, because the order of the nodes may differ. It is nil until a head waits.
	subs   map[string]*pubsub.Subscription
	result *result   // of the last round; nil before the first
	freeAt time.Time // when the lease of the last head that acquired the lock ends
}

// queue waits until the attempt is the head, and then runs a round whenever the lock may be free.
func (at *attempt) queue() (*rlock.Hold, error) {
	w := queues.Join(at.lock.identity, "", 0, func() (known, bool) {
		return known{}, true
	})
	nextAsks := true // whether the next head asks at once
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
		reason, _ := w.Wait(&at.budget)
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
				// The last result concerns an earlier holder. The next head has not asked the nodes, and no
				// message announces the end of our lease, so the next head needs freeAt.
				q.Do(func(k *known) { k.freeAt, k.result = time.Now().Add(at.lease), nil })
				nextAsks = false // the next head waits for our release
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
// If one owner has the lock, pause waits until enough nodes announce a release, or until leases
// should have ended. Otherwise the vote was split or nodes are missing, and pause sleeps for a
// random time. It ignores messages then, because a contender that followed them would collide with
// others again.
func (at *attempt) pause(q *waitqueue.Queue[identity, known], delay *wait.Backoff) bool {
	// longestPause is how long the head of a queue sleeps if a message never arrives.
	const longestPause = 5 * time.Second
	// maxSplitVotes is how many rounds without a quorum for any owner count as bad luck. After that,
	// an owner probably has another name on each node, as in Redisson, so pause listens for its
	// release.
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

// roundBackoff returns the delay before the next round if no release is awaited. The delay is
// longer than a round, and doubles each time.
func roundBackoff(b *wait.Backoff, round time.Duration) time.Duration {
	return b.Within(2*max(round, time.Millisecond), 2*time.Second)
}

// listen waits for d, or until enough nodes on which another owner holds the lock have announced a
// release for a quorum. After the first announcement it waits for the others for at most about two
// rounds. A client that closes also ends the wait. It returns false if the budget ended first. Only
// the head calls listen.
//
// The first call of a queue subscribes. The confirmation of a subscription counts as a message, and
// makes the head ask for earlier announcements.
func (at *attempt) listen(q *waitqueue.Queue[identity, known], d time.Duration) bool {
	r := at.last
	timer, end := time.NewTimer(at.budget.Left(d)), time.Now().Add(d)
	defer timer.Stop()
	cases := receiveAny(receiveAny(nil, timer.C), at.budget.Ctx.Done())
	q.Do(func(k *known) {
		if k.subs == nil {
			k.subs = make(map[string]*pubsub.Subscription)
		}
		for i, node := range at.lock.nodes {
			sub := k.subs[nodeID(node)]
			if sub == nil {
				sub = node.Subscribe()
				if sub == nil {
					continue // the client does not know the kind of a cluster's channels yet
				}
				k.subs[nodeID(node)] = sub
			}
			// The other nodes may announce the release of our own failed round, so listen ignores them.
			if heldError(r.nodes[i]) != nil {
				cases = receiveAny(cases, sub.C())
			}
		}
	})
	messages := len(cases)
	for i, node := range at.lock.nodes {
		if !errors.Is(r.nodes[i], rlock.ErrClosed) { // only clients that close later count
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
