package redlock

import (
	"errors"
	"slices"
	"time"

	"holdfast/lua"
	"holdfast/rlock"
)

// result describes a failed round. It decides when to ask again.
type result struct {
	err       *QuorumError
	permanent bool          // waiting does not help
	took      time.Duration // how long the round took

	// held means that one owner has a quorum. The lock stays held until that owner unlocks, or its
	// lease ends.
	held bool
	// refusing lists the nodes that another owner holds. Only their messages are news: the other
	// nodes may announce the release of our own failed round.
	refusing []int
	// free is the number of nodes that granted the lock to the failed round.
	free int
	// closed lists the nodes whose clients were closed. Any client that closes later is news.
	closed []int
	// freeAfter is the time until enough leases for a quorum should have ended; 0 if unknown.
	freeAfter time.Duration
}

// result returns the result of the round that has just failed. For notAwaited see roundError. It is
// called with mu held, before any part is released.
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

// delayedBeyond reports whether too many nodes stay uncounted past until, which makes waiting until
// then pointless. It is called with mu held.
func (a *acquisition) delayedBeyond(until time.Time) bool {
	delayed := 0
	for i := range a.parts {
		if !until.IsZero() && a.parts[i].vote.Delayed > time.Until(until) {
			delayed++
		}
	}
	return delayed > len(a.parts)-a.lock.quorum
}

// contenderNodes returns the largest number of nodes that one other owner holds. It is called with
// mu held.
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

// roundError returns the error of a failed round. With notAwaited, nodes without an answer are not
// blamed: the answers of others decided the round, or the caller's wait was too short for any
// answer. It is called with mu held.
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

// refusal returns why node i refused; nil if it did not. It is called with mu held.
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

// permanent reports whether so many nodes refuse for good that waiting does not help. It is called
// with mu held.
func (a *acquisition) permanent() bool {
	return a.permanentRefusals() > len(a.lock.nodes)-a.lock.quorum
}

// permanentRefusals counts the nodes that refuse for good. It is called with mu held.
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
