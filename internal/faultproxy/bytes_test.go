package faultproxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What was lost breaks the connection: the next reply would be taken for that to the lost request.
func TestRequestsAndRepliesAreHeldOrLost(t *testing.T) {
	pass := (*Proxy).Pass
	reset := func(p *Proxy) { p.Reset(); p.Pass() }
	for name, of := range map[string]struct {
		fault, end     func(*Proxy)
		executed, lost bool
	}{
		"held replies":          {(*Proxy).HoldReplies, pass, true, false},
		"black hole":            {(*Proxy).BlackHole, pass, false, false},
		"dropped requests":      {(*Proxy).DropRequests, pass, false, true},
		"dropped replies":       {(*Proxy).DropReplies, pass, true, true},
		"reset of held replies": {(*Proxy).HoldReplies, reset, true, true},
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
