package faultproxy

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/portlock"
)

func TestWithoutFaultsDataPasses(t *testing.T) {
	address, _ := echo(t)
	c := dialTo(t, Start(t, address).Addr())
	c.say(t, "one")
	c.hear(t, "one")
}

func TestMovedProxyLeavesConnectionsWhereTheyAre(t *testing.T) {
	before, gotBefore := echo(t)
	after, gotAfter := echo(t)
	p := Start(t, before)
	old := dialTo(t, p.Addr())
	old.say(t, "one")
	old.hear(t, "one")
	p.MoveTo(after)
	dialTo(t, p.Addr()).say(t, "two")
	require.Equal(t, "two", heard(t, gotAfter))
	old.say(t, "three")
	require.Equal(t, "one", heard(t, gotBefore))
	require.Equal(t, "three", heard(t, gotBefore))
}

func TestHeldRepliesArriveAfterPass(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.HoldReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	c.silent(t)
	p.Pass()
	c.hear(t, "one")
}

func TestHeldRequestsHoldNoReplies(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.HoldReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	p.HoldRequests()
	c.say(t, "two")
	p.replies.gate.open()
	c.hear(t, "one")
	c.silent(t)
	require.Empty(t, got)
	p.Pass()
	c.hear(t, "two")
}

func TestBlackHoleKeepsRequestsFromTheTarget(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	p.BlackHole()
	c := dialTo(t, p.Addr())
	c.say(t, "one")
	c.silent(t)
	require.Empty(t, got)
	p.Pass()
	c.hear(t, "one")
}

func TestBlackHoleNewSparesOldConnections(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	old := dialTo(t, p.Addr())
	old.say(t, "one")
	old.hear(t, "one")
	p.BlackHoleNew()
	c := dialTo(t, p.Addr())
	c.say(t, "two")
	c.silent(t)
	old.say(t, "three")
	old.hear(t, "three")
	p.Pass()
	c.hear(t, "two")
}

func TestResetLosesWhatWasHeld(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.HoldReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	require.Equal(t, 1, p.Reset())
	c.broken(t)
	p.Pass()
	again := dialTo(t, p.Addr())
	again.say(t, "two")
	again.hear(t, "two")
}

// What a client sent before it hung up is a request like any other: the server gets it late.
func TestRequestsHeldWhenTheClientHangsUpAreStillPassedOn(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	c.say(t, "one")
	c.hear(t, "one")
	require.Equal(t, "one", heard(t, got))
	p.BlackHole()
	c.say(t, "two")
	require.NoError(t, c.Close())
	p.Pass()
	require.Equal(t, "two", heard(t, got))
}

// A reset overtakes what the server has not received yet, so the proxy waits.
func TestLargeRequestOfAClientThatHangsUpArrivesWhole(t *testing.T) {
	t.Parallel()
	s, p := served(t)
	c := dialTo(t, p.Addr())
	s.Pause(t)
	c.say(t, "SET k "+strings.Repeat("x", 16<<20))
	require.NoError(t, c.Close())
	s.Resume(t)
	eventually(t, func() bool { return s.DoInt(t, "STRLEN", "k") == 16<<20 }, "it has not arrived")
}

func TestDroppedRequestsNeverArriveAndTheConnectionStaysUp(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	c.say(t, "one")
	c.hear(t, "one")
	require.Equal(t, "one", heard(t, got))
	p.DropRequests()
	c.say(t, "two")
	c.silent(t)
	require.Empty(t, got)
	fresh := dialTo(t, p.Addr()) // loses nothing
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.links) == 2
	}, "connected")

	p.Pass()
	c.broken(t) // the next reply would be taken for that to the lost request
	require.Empty(t, got)
	fresh.say(t, "three")
	fresh.hear(t, "three")
}

func TestDroppedRepliesAreThoseOfRequestsThatWereExecuted(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.DropReplies()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	c.silent(t)
	c.say(t, "two")
	require.Equal(t, "two", heard(t, got))
	c.silent(t)
	p.Pass()
	c.broken(t)
}

func TestDelayAppliesToBothDirections(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.Delay(shortly)
	start := time.Now()
	c.say(t, "one")
	c.hear(t, "one")
	require.GreaterOrEqual(t, time.Since(start), 2*shortly)
}

func TestDelayIsThatOfTheNetworkAndNotOfEachRequest(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	const long = 4 * shortly
	p.DelayRequests(long)
	start := time.Now()
	for range 20 {
		c.say(t, "one")
	}
	for range 20 {
		c.hear(t, "one")
	}
	require.Less(t, time.Since(start), 10*long)
}

func TestHealAcceptsConnectionsOnARefusedPort(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	c.say(t, "one")
	c.hear(t, "one")
	p.Refuse()
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	c.say(t, "an old connection goes on")
	c.hear(t, "an old connection goes on")
	require.NoError(t, p.Heal())
	again := dialTo(t, p.Addr())
	again.say(t, "two")
	again.hear(t, "two")
}

func TestRefusedPortStaysReserved(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	p.Refuse()
	other, err := portlock.Among(p.port.Number, p.port.Number)
	other.Release()
	require.Error(t, err)
	require.NoError(t, p.Accept())
}

func TestHealEndsEveryFault(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	p.BlackHole()
	p.BlackHoleNew()
	p.HoldMessages()
	p.Delay(time.Hour)
	p.Reply("one", 1, Loading)
	p.Refuse()
	require.NoError(t, p.Heal())
	c := dialTo(t, p.Addr())
	c.say(t, "one")
	c.hear(t, "one")
	require.Equal(t, passed, p.messagesAre())
}

func TestClientIsResetWhenTheTargetIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	p := Start(t, listener.Addr().String())
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
		_, err = c.Read(make([]byte, 1))
	}
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF), "%v", err)
}
