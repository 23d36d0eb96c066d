package faultproxy

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeldRepliesArriveAfterPass(t *testing.T) {
	p, got := echo(t)
	c := dialTo(t, p)
	p.HoldReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	c.silent(t)
	p.Pass()
	c.hear(t, bulk("one"))
}

func TestBlackHoleKeepsRequestsFromTheTarget(t *testing.T) {
	p, got := echo(t)
	p.BlackHole()
	c := dialTo(t, p)
	c.say(t, "one")
	c.silent(t)
	require.Empty(t, got)
	p.Pass()
	c.hear(t, bulk("one"))
}

func TestResetLosesWhatWasHeld(t *testing.T) {
	p, got := echo(t)
	c := dialTo(t, p)
	p.HoldReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	require.Equal(t, 1, p.Reset())
	c.broken(t)
	p.Pass()
	again := dialTo(t, p)
	again.say(t, "two")
	again.hear(t, bulk("two"))
}

func TestDroppedRequestsNeverArriveAndTheConnectionStaysUp(t *testing.T) {
	p, got := echo(t)
	c := dialTo(t, p)
	c.say(t, "one")
	c.hear(t, bulk("one"))
	require.Equal(t, "one", heard(t, got))
	p.DropRequests()
	c.say(t, "two")
	c.silent(t)
	require.Empty(t, got)
	p.Pass()
	c.broken(t) // the next reply would be taken for that to the lost request
	require.Empty(t, got)
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
