package faultproxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was lost breaks the connection: the next reply would be taken for that to the lost request.
func TestRequestsAndRepliesAreHeldOrLost(t *testing.T) {
	pass := (*Proxy).Pass
	reset := func(p *Proxy) { p.Reset(); p.Pass() }
	for name, of := range map[string]struct {
		fault, end          func(*Proxy)
		executed, lost, gap bool // gap: it is lost before the end of the fault
	}{
		"held replies":          {(*Proxy).HoldReplies, pass, true, false, false},
		"black hole":            {(*Proxy).BlackHole, pass, false, false, false},
		"dropped requests":      {(*Proxy).DropRequests, pass, false, true, true},
		"dropped replies":       {(*Proxy).DropReplies, pass, true, true, true},
		"reset of held replies": {(*Proxy).HoldReplies, reset, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, got := echo(t)
			c := dialTo(t, p)
			c.say(t, "one")
			c.hear(t, bulk("one"))
			require.Equal(t, "one", heard(t, got))
			of.fault(p)
			c.say(t, "two")
			if of.executed {
				require.Equal(t, "two", heard(t, got))
			}
			if of.gap {
				require.Eventually(t, p.hasGap, soon, time.Millisecond, "nothing was lost")
			}
			c.silent(t)
			require.Empty(t, got)
			of.end(p)
			if of.lost {
				c.broken(t)
				c = dialTo(t, p)
				c.say(t, "two")
			}
			c.hear(t, bulk("two"))
		})
	}
}

// hasGap reports whether a connection has lost something.
func (p *Proxy) hasGap() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.lostRequests || l.lostReplies {
			return true
		}
	}
	return false
}
