package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/rlock"
)

// ErrNoQuorum is the error when too few nodes could be counted, whoever holds the lock. It comes as
// a *[QuorumError] that says what is wrong with each.
var ErrNoQuorum = errors.New("no quorum")

// QuorumError says what each node answered when there was no quorum.
type QuorumError struct {
	Lock    string
	Want    int         // the quorum
	Granted int         // nodes that said yes
	Nodes   []NodeError // those that did not, in the order of the lock's nodes
	did     string      // what the nodes that said yes did; "" = granted
	cause   error       // why it was not tried again, or what it means
}

// NodeError is why a node does not count.
type NodeError struct {
	Server string // what it is called
	// Err is a *[rlock.HeldError] if somebody else has the lock there, a *[DelayedError] if the
	// node has restarted, else why there was no answer.
	Err error
}

// Error names the nodes.
func (e *QuorumError) Error() string {
	var b strings.Builder
	if e.cause != nil {
		fmt.Fprintf(&b, "%v: ", e.cause)
	}
	switch {
	case e.did != "":
	case e.outvoted():
		b.WriteString("not acquired: ")
	default:
		b.WriteString("no quorum: ")
	}
	if len(e.Nodes) == 0 {
		why := "somebody in this process holds it or waits for it; wait longer or shorten its lease"
		if errors.Is(e.cause, rlock.ErrReleased) {
			why = "this context belongs to a hold that was released"
		}
		b.WriteString(why)
		return b.String()
	}
	fmt.Fprintf(
		&b,
		"%d of %d nodes %s it, %d are needed",
		e.Granted,
		e.Granted+len(e.Nodes),
		cmp.Or(e.did, "granted"),
		e.Want,
	)
	b.WriteString(listNodes(e.Nodes))
	return b.String()
}

// Unwrap gives [rlock.ErrNotAcquired] or [ErrNoQuorum], what ended the wait, and the errors of the
// nodes that failed.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	closed := 0
	for _, n := range e.Nodes {
		var held *rlock.HeldError
		switch {
		case errors.Is(n.Err, rlock.ErrClosed):
			closed++
		case !errors.As(n.Err, &held) || e.outvoted():
			errs = append(errs, n.Err)
		}
	}
	if closed > 0 && closed > e.Granted+len(e.Nodes)-e.Want {
		errs = append(errs, rlock.ErrClosed) // of too many
	}
	if e.outvoted() {
		return append(errs, rlock.ErrNotAcquired)
	}
	return append(errs, ErrNoQuorum)
}

// outvoted tells that others hold the lock: there would be enough nodes without them. Those that
// had not answered yet when it became impossible are taken to be well.
func (e *QuorumError) outvoted() bool {
	if len(e.Nodes) == 0 {
		return true // by somebody of this process
	}
	others, open, failed := 0, 0, 0
	for _, n := range e.Nodes {
		var held *rlock.HeldError
		switch {
		case errors.As(n.Err, &held):
			others++
		case errors.Is(n.Err, errNotAwaited):
			open++
		default:
			failed++
		}
	}
	return (others > 0 || failed == 0) && e.Granted+others+open >= e.Want
}

// DelayedError says that a node may have forgotten who holds the lock, and for how long it is not
// counted.
type DelayedError struct {
	For     time.Duration
	Emptied bool // it was emptied, or is new; else it has restarted
}

// Error says what to do about it.
func (d *DelayedError) Error() string {
	why := "was started less than MaxLease ago"
	if d.Emptied {
		why = "is new, or was emptied, less than MaxLease ago"
	}
	return fmt.Sprintf(
		"not counted for another %v, because it %s and may have forgotten who holds the lock: wait, choose a smaller redlock.Options.MaxLease in all processes, or, if it runs with appendfsync always, state FsyncAlways",
		d.For.Round(time.Millisecond),
		why,
	)
}

// stalledError is a node that was not asked, because it has not answered what it was asked before.
type stalledError struct{ after time.Duration }

func (s *stalledError) Error() string {
	return fmt.Sprintf("it has not answered for %v", s.after.Round(time.Millisecond))
}

// errSameServer is a node that is not independent.
var errSameServer = errors.New(
	"it is the same server as another node, under another name: a RedLock wants independent servers",
)

// errNotAwaited is a node whose answer would not have changed anything.
var errNotAwaited = errors.New("its answer was not waited for")

// errNoAnswer is a node that was asked in vain.
var errNoAnswer = errors.New("no answer in time (see redlock.Options.NodeTimeout)")

// listed is what is wrong with each node, and once what is wrong with several.
func listNodes(nodes []NodeError) string {
	var order []string
	servers := make(map[string][]string)
	for _, n := range nodes {
		text := n.Err.Error()
		var held *rlock.HeldError
		if errors.As(n.Err, &held) {
			text = "held by " + held.Owner
			if held.TTL > 0 {
				text += fmt.Sprintf(" for another %v", held.TTL.Round(100*time.Millisecond))
			}
		}
		if servers[text] == nil {
			order = append(order, text)
		}
		servers[text] = append(servers[text], n.Server)
	}
	var b strings.Builder
	for _, text := range order {
		fmt.Fprintf(&b, "; %s: %s", strings.Join(servers[text], ", "), text)
	}
	return b.String()
}
