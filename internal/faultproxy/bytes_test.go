package faultproxy

import (
	"net"
	"syscall"
	"testing"
	"time"

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

func TestDelayOfOneDirectionSparesTheOther(t *testing.T) {
	p, got := echo(t)
	c := dialTo(t, p)
	p.DelayReplies(shortly)
	start := time.Now()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	c.hear(t, bulk("one"))
	require.GreaterOrEqual(t, time.Since(start), shortly)

	p.DelayReplies(0)
	p.DelayRequests(shortly)
	start = time.Now()
	c.say(t, "two")
	require.Equal(t, "two", heard(t, got))
	require.GreaterOrEqual(t, time.Since(start), shortly)
	c.hear(t, bulk("two"))
}

func TestHealAcceptsConnectionsOnARefusedPort(t *testing.T) {
	p, _ := echo(t)
	old := dialTo(t, p)
	old.say(t, "one")
	old.hear(t, bulk("one"))
	p.Refuse()
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	old.say(t, "an old connection goes on")
	old.hear(t, bulk("an old connection goes on"))
	require.NoError(t, p.Heal())
	again := dialTo(t, p)
	again.say(t, "two")
	again.hear(t, bulk("two"))
}
