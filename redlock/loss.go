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

// tally is the reason of a loss: what became of the parts. It is called with mu held.
func (t *acquisition) tally(last error) error {
	e := &lossError{want: t.lock.quorum, last: last}
	now := time.Now()
	for i := range t.parts {
		p := &t.parts[i]
		err := p.err
		switch {
		case p.state == granted && now.Before(p.request.trusted()):
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
		if errors.Is(e.last, rlock.ErrClosed) {
			e.last = err // a hold that ends because clients were closed is not lost
		}
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

func (e *lossError) Unwrap() error { return e.last }
