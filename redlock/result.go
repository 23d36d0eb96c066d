package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// result describes a failed round. It decides when to ask again.
type result struct {
	err       *QuorumError
	nodes     []error       // by node: why the node does not count; nil if it does
	took      time.Duration // how long the round took
	held      bool          // another owner has a quorum, until its release or the end of its lease
	permanent bool          // waiting does not help
	freeAfter time.Duration // until enough leases for a quorum should have ended; 0 if unknown
}

// result returns the result of a round that has just failed. Nodes without a reply do not count as
// failed if other nodes decided the round, or the wait was too short for any reply. It is called
// with mu held.
func (a *acquisition) result(b *wait.Budget, decided bool, took time.Duration) *result {
	noReply := ErrNoReply
	if decided || b.Over() && took < shortestWait {
		noReply = errNotAwaited
	}
	r := &result{err: a.quorumError("", noReply, in(granted)), took: took,
		held: a.contenderNodes() >= a.lock.quorum}
	delayed := 0 // nodes that do not count before the wait ends
	var leases []time.Duration
	for _, p := range a.parts {
		r.nodes = append(r.nodes, p.err)
		var d *DelayedError
		if errors.As(p.err, &d) && !b.Until.IsZero() && d.For > time.Until(b.Until) {
			delayed++
		}
		if h := heldError(p.err); h != nil && h.TTL != rlock.NoExpiry {
			leases = append(leases, h.TTL)
		}
	}
	r.permanent = max(delayed, a.permanentRefusals()) > a.lock.spare
	slices.Sort(leases)
	if needed := a.lock.quorum - r.err.Granted; needed > 0 && needed <= len(leases) {
		r.freeAfter = max(leases[needed-1], time.Millisecond)
	}
	return r
}

// The methods below are called with mu held.

// contenderNodes returns the largest number of nodes on which the same other owner holds the lock.
func (a *acquisition) contenderNodes() (most int) {
	nodes := make(map[string]int)
	for _, p := range a.parts {
		if h := heldError(p.err); h != nil {
			nodes[h.Owner]++
			most = max(most, nodes[h.Owner])
		}
	}
	return most
}

// permanentRefusals counts the nodes that reject the lock for good.
func (a *acquisition) permanentRefusals() int {
	return a.countIf(func(p *part) bool {
		return errors.Is(p.err, rlock.ErrClosed) || p.node.Permanent(p.err)
	})
}

// quorumError returns an error with the nodes for which agrees returns false, and why they do not
// count. did says what the others did. noReply is the error of nodes without a reply.
func (a *acquisition) quorumError(did string, noReply error, agrees func(*part) bool) *QuorumError {
	e := &QuorumError{Lock: a.lock.name, Want: a.lock.quorum, did: did}
	for i, p := range a.parts {
		if agrees(p) {
			e.Granted++
			continue
		}
		err := cmp.Or(p.err, noReply)
		switch p.state {
		case asked, unwanted, releaseSent:
			err = noReply
		case gone:
			err = watchdog.ErrGone
		default:
		}
		server := cmp.Or(p.node.Server(), fmt.Sprint("node ", i+1))
		e.Nodes = append(e.Nodes, NodeError{Server: server, Err: err})
	}
	return e
}

// lostError returns the error of a loss, with the nodes that do not hold the lock any more.
func (a *acquisition) lostError(reason error, holds func(p *part) bool) *rlock.LostError {
	e := a.quorumError("", ErrNoReply, holds)
	for _, n := range e.Nodes {
		if errors.Is(reason, rlock.ErrClosed) {
			reason = n.Err // a closed client is not the reason of a loss
		}
	}
	text := e.list("held on %d of %d nodes, %d are needed")
	return &rlock.LostError{Lock: a.lock.name, Reason: &lossError{text, reason}}
}
