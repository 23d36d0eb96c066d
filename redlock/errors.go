package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// ErrNoQuorum is the error when too few nodes could be counted, whoever holds the lock. It comes as a *[QuorumError] that
// says what is wrong with each.
var ErrNoQuorum = errors.New("no quorum")

// QuorumError says what each node answered when there was no quorum.
type QuorumError struct {
	Lock    string
	Want    int         // the quorum
	Granted int         // nodes that said yes
	Nodes   []NodeError // those that did not, in the order of the lock's nodes
	cause   error       // why it was not tried again, or what it means
}

// NodeError is why a node does not count.
type NodeError struct {
	Server string // what it is called
	// Err is a *[rlock.HeldError] if somebody else has the lock there, a *[DelayedError] if the node has restarted, else why
	// there was no answer.
	Err error
}

// Error names the nodes.
func (e *QuorumError) Error() string {
	var b strings.Builder
	if e.cause != nil {
		fmt.Fprintf(&b, "%v: ", e.cause)
	}
	if len(e.Nodes) == 0 {
		b.WriteString("not acquired: somebody in this process holds it or waits for it; wait longer or shorten its lease")
		return b.String()
	}
	fmt.Fprintf(&b, "%d of %d nodes granted it, %d are needed", e.Granted, e.Granted+len(e.Nodes), e.Want)
	b.WriteString(listed(e.Nodes))
	return b.String()
}

// Unwrap gives [rlock.ErrNotAcquired] or [ErrNoQuorum], what ended the wait, and the errors of the nodes that failed.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	for _, n := range e.Nodes {
		var held *rlock.HeldError
		if !errors.As(n.Err, &held) || e.outvoted() {
			errs = append(errs, n.Err)
		}
	}
	switch {
	case len(e.Nodes) == 0:
		errs = append(errs, rlock.ErrNotAcquired)
	case !e.outvoted():
		errs = append(errs, ErrNoQuorum)
	}
	return errs
}

// outvoted tells that others hold the lock: there would be enough nodes without them. Those that had not answered yet when it
// became impossible are taken to be well.
func (e *QuorumError) outvoted() bool {
	others, open := 0, 0
	for _, n := range e.Nodes {
		var held *rlock.HeldError
		switch {
		case errors.As(n.Err, &held):
			others++
		case errors.Is(n.Err, errNotAwaited):
			open++
		}
	}
	return others > 0 && e.Granted+others+open >= e.Want
}

// DelayedError says that a node may have forgotten who holds the lock, and for how long it is not counted.
type DelayedError struct {
	For     time.Duration
	Emptied bool // it was emptied, or is new; else it has restarted
}

// Error says what to do about it.
func (e *DelayedError) Error() string {
	why := "it has restarted"
	if e.Emptied {
		why = "it is new, or was emptied"
	}
	return fmt.Sprintf("not counted for another %v, because %s and may have forgotten who holds the lock (see redlock.Options.MaxLease)",
		e.For.Round(time.Millisecond), why)
}

// silence is a node that was not asked, because it has not answered what it was asked before.
type silence struct{ after time.Duration }

func (e *silence) Error() string {
	return fmt.Sprintf("it has not answered for %v", e.after.Round(time.Millisecond))
}

// errNotAwaited is a node whose answer would not have changed anything.
var errNotAwaited = errors.New("its answer was not waited for")

// errNoAnswer is a node that was asked in vain.
var errNoAnswer = errors.New("no answer within the node's time-out (see redlock.Options.NodeTimeout)")

// failure is the round's error. It is called with mu held.
func (t *tenure) failure(cause error) *QuorumError {
	e := &QuorumError{Lock: t.lock.name, Want: t.lock.quorum, cause: cause}
	for i := range t.parts {
		p := &t.parts[i]
		err := p.err
		switch {
		case p.state == granted:
			e.Granted++
			continue
		case p.state == asked && time.Since(p.asked) < p.call.Patience:
			err = errNotAwaited
		case p.state == asked:
			err = errNoAnswer
		case err == nil:
			err = t.refusal(i)
		}
		e.Nodes = append(e.Nodes, NodeError{Server: t.lock.called(i), Err: err})
	}
	return e
}

// refusal is what node i had against it, nil if nothing. It is called with mu held.
func (t *tenure) refusal(i int) error {
	vote := t.parts[i].vote
	switch {
	case vote.Holder != nil:
		h := vote.Holder
		return &rlock.HeldError{Lock: t.lock.nodes[i].Name(), Owner: h.Owner, TTL: h.TTL, Next: h.Next}
	case vote.Delayed > 0:
		return &DelayedError{For: vote.Delayed, Emptied: vote.Emptied}
	default:
		return nil
	}
}

// tally is the reason of a loss: what became of the parts. It is called with mu held.
func (t *tenure) tally(last error) error {
	e := &lossError{want: t.lock.quorum, last: last}
	now := time.Now()
	for i := range t.parts {
		p := &t.parts[i]
		err := p.err
		switch {
		case p.state == granted && now.Before(p.grant.trusted()):
			e.held++
			continue
		case p.state == granted:
			err = watchdog.ErrExpired // and nobody has told us yet
		case p.state == asked:
			err = errNoAnswer
		case err == nil:
			err = cmp.Or(t.refusal(i), errNoPart)
		}
		e.nodes = append(e.nodes, NodeError{Server: t.lock.called(i), Err: err})
	}
	return e
}

var errNoPart = errors.New("not taken there")

// lossError says which nodes do not hold the lock any more.
type lossError struct {
	held, want int
	nodes      []NodeError
	last       error
}

func (e *lossError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "held on %d of %d nodes, %d are needed", e.held, e.held+len(e.nodes), e.want)
	b.WriteString(listed(e.nodes))
	return b.String()
}

// listed is what is wrong with each node, and once what is wrong with several.
func listed(nodes []NodeError) string {
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

func (e *lossError) Unwrap() error { return e.last }

// hopeless tells that so many nodes refuse for good that waiting does not help. It is called with mu held.
func (t *tenure) hopeless() bool {
	refusing := 0
	for i, node := range t.lock.nodes {
		err := t.parts[i].err
		if err == nil {
			continue
		}
		var refusal *lua.Error
		if errors.Is(err, rlock.ErrClosed) || errors.As(err, &refusal) && node.Hopeless(err) {
			refusing++
		}
	}
	return refusing > len(t.lock.nodes)-t.lock.quorum
}
