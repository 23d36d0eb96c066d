package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/internal/printable"
	"holdfast/rlock"
)

// ErrNoQuorum reports that too few nodes replied or counted. A *[QuorumError] wraps ErrNoQuorum.
var ErrNoQuorum = errors.New("no quorum")

// ErrNoReply is the Err of a [NodeError] if the node did not reply within [Options].NodeTimeout, or
// has not replied to an earlier request yet.
var ErrNoReply = errors.New("no reply in time; check the node, or raise " +
	"redlock.Options.NodeTimeout")

// QuorumError reports the reply of each node when there was no quorum.
type QuorumError struct {
	Lock    string
	Want    int         // the quorum
	Granted int         // the number of nodes that agreed
	Nodes   []NodeError // those that did not, in the order of the lock's nodes
	did     string      // what the nodes that agreed did; "" if they granted the lock
	cause   error       // why there was no retry, or what the error means
}

// NodeError reports why a node does not count.
type NodeError struct {
	Server string // the name of the node's server
	// Err is a *[rlock.HeldError] if another owner holds the lock there, a *[DelayedError] if the node
	// has restarted, and otherwise the reason why there was no reply.
	Err error
}

// Error lists the nodes.
func (e *QuorumError) Error() string {
	text := ""
	if e.cause != nil {
		// The cause may begin with the prefix, which is in front of the text already.
		text = strings.ReplaceAll(e.cause.Error(), "holdfast: ", "") + ": "
	}
	switch {
	case e.did != "":
	case e.outvoted():
		text += "not acquired: "
	default:
		text += "no quorum: "
	}
	switch {
	case len(e.Nodes) > 0:
		return text + e.list("%d of %d nodes "+cmp.Or(e.did, "granted")+" the lock, %d are needed")
	case errors.Is(e.cause, rlock.ErrReleased):
		return text + "ctx belongs to a released hold; pass another context"
	case e.cause != nil:
		return text + "the wait ended before the first request; use a longer wait"
	}
	return text + "another caller in this process holds the lock or waits for it; " +
		"retry later, or use a longer wait"
}

// Unwrap returns [rlock.ErrNotAcquired] or [ErrNoQuorum], the error that ended the wait, and the
// errors of the nodes that failed.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	outcome, closed := ErrNoQuorum, 0
	if e.outvoted() {
		outcome = rlock.ErrNotAcquired
	}
	for _, n := range e.Nodes {
		switch {
		case errors.Is(n.Err, rlock.ErrClosed):
			closed++
		case heldError(n.Err) == nil || e.outvoted():
			errs = append(errs, n.Err)
		}
	}
	if closed > 0 && closed > e.Granted+len(e.Nodes)-e.Want {
		errs = append(errs, rlock.ErrClosed) // no quorum is left
	}
	return append(errs, outcome)
}

// outvoted reports whether other owners hold the lock, so that without them there would be enough
// nodes. A node counts as available if its reply was not awaited.
func (e *QuorumError) outvoted() bool {
	if len(e.Nodes) == 0 {
		return true // another caller of this process holds the lock or waits for it
	}
	others, failed := 0, 0
	for _, n := range e.Nodes {
		switch {
		case heldError(n.Err) != nil:
			others++
		case !errors.Is(n.Err, errNotAwaited):
			failed++
		}
	}
	return (others > 0 || failed == 0) && e.Granted+len(e.Nodes)-failed >= e.Want
}

// heldError returns the error of a node on which another owner holds the lock; nil for any other
// error.
func heldError(err error) (h *rlock.HeldError) {
	errors.As(err, &h)
	return h
}

// DelayedError reports that a node does not count yet, because the node may have forgotten who
// holds the lock.
type DelayedError struct {
	For     time.Duration // for how much longer the node is not counted
	Emptied bool          // the node was emptied, or is new; else it has restarted
}

// Error says how to avoid the delay.
func (d *DelayedError) Error() string {
	why := "started"
	if d.Emptied {
		why = "is new or was emptied"
	}
	return fmt.Sprintf("the node %s less than MaxLease ago and may have lost locks, so it does not "+
		"count for another %v; wait, set a smaller redlock.Options.MaxLease in all processes, or set "+
		"FsyncAlways if the node runs with appendfsync always",
		why, d.For.Round(time.Millisecond))
}

var (
	errSameServer = errors.New("the same server as another node, under another name; " +
		"a RedLock needs independent servers")
	// errNotAwaited means that the reply of a node would not have changed the result.
	errNotAwaited = errors.New("the result was decided before the reply")
	errNoPart     = errors.New("not acquired there")
	// errRejoined is the error of a node that has granted its part again.
	errRejoined = errors.New("lost, and acquired there again, but others may have had it in between")
)

// stalledError is an [ErrNoReply] of a node that gets no requests until it replies.
type stalledError struct{ since time.Duration }

func (e stalledError) Error() string {
	return fmt.Sprintf("no reply for %v; check the node", e.since.Round(time.Millisecond))
}

func (stalledError) Unwrap() error { return ErrNoReply }

// list formats how many nodes agreed, and the other nodes by error, in order of the nodes.
func (e *QuorumError) list(agreed string) string {
	var texts []string
	servers := make(map[string][]string)
	for _, n := range e.Nodes {
		text := n.Err.Error()
		if held := heldError(n.Err); held != nil {
			text = "held by " + printable.Short(held.Owner)
			if held.TTL > 0 {
				text += fmt.Sprintf(" for another %v", held.TTL.Round(100*time.Millisecond))
			}
		}
		if servers[text] == nil {
			texts = append(texts, text)
		}
		servers[text] = append(servers[text], n.Server)
	}
	list := []string{fmt.Sprintf(agreed, e.Granted, e.Granted+len(e.Nodes), e.Want)}
	for _, text := range texts {
		list = append(list, strings.Join(servers[text], ", ")+": "+text)
	}
	return strings.Join(list, "; ")
}

// lossError says why a lock was lost. Its text lists the nodes that do not hold the lock any more.
type lossError struct {
	text   string
	reason error
}

func (le *lossError) Error() string { return le.text }
func (le *lossError) Unwrap() error { return le.reason }
