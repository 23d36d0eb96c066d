package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/rlock"
	"holdfast/watchdog"
)

// lossReason returns the reason for a loss, with the state of each part. It is called with mu held.
func (a *acquisition) lossReason(last error) error {
	e := &lossError{want: a.lock.quorum, last: last}
	now := time.Now()
	for i := range a.parts {
		p := &a.parts[i]
		err := p.err
		switch {
		case p.state == granted && now.Before(p.request.trustedUntil()):
			e.held++
			continue
		case p.state == granted:
			err = watchdog.ErrExpired // the watchdog has not reported it yet
		case p.state == asked:
			err = errNoAnswer
		case err == nil:
			err = cmp.Or(a.refusal(i), errNoPart)
		}
		e.nodes = append(e.nodes, NodeError{Server: a.lock.serverName(i), Err: err})
		if errors.Is(e.last, rlock.ErrClosed) {
			e.last = err // a hold that ends because clients were closed is not lost
		}
	}
	return e
}

var errNoPart = errors.New("not taken there")

// lossError lists the nodes that do not hold the lock any more.
type lossError struct {
	held, want int
	nodes      []NodeError
	last       error
}

func (le *lossError) Error() string {
	var b strings.Builder
	n := le.held + len(le.nodes)
	fmt.Fprintf(&b, "held on %d of %d nodes, %d are needed", le.held, n, le.want)
	b.WriteString(listNodes(le.nodes))
	return b.String()
}

func (le *lossError) Unwrap() error { return le.last }
