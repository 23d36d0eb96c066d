package redlock

import (
	"errors"
	"slices"
	"time"

	"holdfast/lua"
	"holdfast/rlock"
)

// result is what a failed round says about when to ask again.
type result struct {
	err       *QuorumError
	permanent bool
	took      time.Duration

	// held tells that one owner has a quorum, so that nothing is to be had until it unlocks, or its
	// lease ends.
	held bool
	// refusing are the nodes on which somebody else has the lock. Only they can announce something
	// new: on the others it may be our own retreat that is announced.
	refusing []int
	// free is how many nodes would have granted it.
	free int
	// closed are the nodes whose clients were closed. A client that closes after its node has
	// answered is news.
	closed []int
	// freeAfter is when leases should be over on so many nodes that there is a quorum; 0 if that
	// cannot be told.
	freeAfter time.Duration
}

// result is what the round that has just failed says. For notAwaited see failure. It is called with
// mu held, before anything is given up.
func (a *acquisition) result(notAwaited bool, took time.Duration) *result {
	r := &result{
		err:       a.roundError(notAwaited),
		permanent: a.permanent(),
		took:      took,
		free:      a.count(granted),
	}
	r.held = a.contenderNodes() >= a.lock.quorum
	var leases []time.Duration
	for i := range a.parts {
		if errors.Is(a.parts[i].err, rlock.ErrClosed) {
			r.closed = append(r.closed, i)
		}
		h := a.parts[i].vote.Holder
		if a.parts[i].state == granted || h == nil {
			continue
		}
		r.refusing = append(r.refusing, i)
		if h.TTL != rlock.NoExpiry {
			leases = append(leases, h.TTL)
		}
	}
	slices.Sort(leases)
	if needed := a.lock.quorum - r.free; needed > 0 && needed <= len(leases) {
		r.freeAfter = max(leases[needed-1], time.Millisecond)
	}
	return r
}

// delayedBeyond tells that so many nodes are not counted until then that waiting does not help. It
// is called with mu held.
func (a *acquisition) delayedBeyond(until time.Time) bool {
	delayed := 0
	for i := range a.parts {
		if !until.IsZero() && a.parts[i].vote.Delayed > time.Until(until) {
			delayed++
		}
	}
	return delayed > len(a.parts)-a.lock.quorum
}

// contender is on how many nodes somebody else has the lock, whoever of the others has it on most.
// It is called with mu held.
func (a *acquisition) contenderNodes() (most int) {
	nodes := make(map[string]int)
	for i := range a.parts {
		if h := a.parts[i].vote.Holder; h != nil && a.parts[i].state != granted {
			nodes[h.Owner]++
			most = max(most, nodes[h.Owner])
		}
	}
	return most
}

// failure is the round's error. Nodes that have not answered are not to blame if they were not
// awaited: the answers of others decided it, or the caller's time was so short that nobody answers
// that fast. It is called with mu held.
func (a *acquisition) roundError(notAwaited bool) *QuorumError {
	e := &QuorumError{Lock: a.lock.name, Want: a.lock.quorum}
	for i := range a.parts {
		p := &a.parts[i]
		err := p.err
		switch {
		case p.state == granted:
			e.Granted++
			continue
		case p.state == asked && notAwaited:
			err = errNotAwaited
		case p.state == asked:
			err = errNoAnswer
		case err == nil:
			err = a.refusal(i)
		}
		e.Nodes = append(e.Nodes, NodeError{Server: a.lock.serverName(i), Err: err})
	}
	return e
}

// refusal is what node i had against it, nil if nothing. It is called with mu held.
func (a *acquisition) refusal(i int) error {
	vote := a.parts[i].vote
	switch {
	case vote.Holder != nil:
		h := vote.Holder
		return &rlock.HeldError{
			Lock:  a.lock.nodes[i].Name(),
			Owner: h.Owner,
			TTL:   h.TTL,
			Next:  h.Next,
		}
	case vote.Delayed > 0:
		return &DelayedError{For: vote.Delayed, Emptied: vote.Emptied}
	default:
		return nil
	}
}

// permanent tells that so many nodes refuse for good that waiting does not help. It is called with
// mu held.
func (a *acquisition) permanent() bool {
	return a.permanentRefusals() > len(a.lock.nodes)-a.lock.quorum
}

// refusing counts the nodes that refuse for good. It is called with mu held.
func (a *acquisition) permanentRefusals() int {
	refusing := 0
	for i, node := range a.lock.nodes {
		err := a.parts[i].err
		if err == nil {
			continue
		}
		var refusal *lua.Error
		if errors.Is(err, rlock.ErrClosed) || errors.As(err, &refusal) && node.Permanent(err) {
			refusing++
		}
	}
	return refusing
}
