package faultproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is more than enough for what must happen; shortly is how long a test watches that something does not.
const (
	soon    = 5 * time.Second
	shortly = 50 * time.Millisecond
)

// echo is a target that says back what it hears. got is what it heard.
func echo(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	heard := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buffer := make([]byte, 1024)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					heard <- string(buffer[:n])
					if _, err := c.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-done
	})
	return listener.Addr().String(), heard
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// hear requires that text arrives.
func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	buffer := make([]byte, len(text))
	_, err := io.ReadFull(c, buffer)
	require.NoError(t, err)
	require.Equal(t, text, string(buffer))
}

// silent requires that nothing arrives, and that the connection is in order.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(shortly)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// broken requires that the connection is reset before anything arrives.
func broken(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestWithoutFaultsDataPasses(t *testing.T) {
	address, _ := echo(t)
	c := dial(t, Start(t, address))
	say(t, c, "one")
	hear(t, c, "one")
}

func TestHeldRepliesArriveAfterPass(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	p.HoldReplies()
	say(t, c, "one")
	require.Equal(t, "one", <-got)
	silent(t, c)
	p.Pass()
	hear(t, c, "one")
}

func TestBlackHoleKeepsRequestsFromTheTarget(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	p.BlackHole()
	c := dial(t, p)
	say(t, c, "one")
	silent(t, c)
	require.Empty(t, got)
	p.Pass()
	hear(t, c, "one")
}

func TestBlackHoleNewSparesOldConnections(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	old := dial(t, p)
	say(t, old, "one")
	hear(t, old, "one")
	p.BlackHoleNew()
	c := dial(t, p)
	say(t, c, "two")
	silent(t, c)
	say(t, old, "three")
	hear(t, old, "three")
	p.Pass()
	hear(t, c, "two")
}

func TestResetForgetsWhatWasHeld(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	p.HoldReplies()
	say(t, c, "one")
	require.Equal(t, "one", <-got)
	require.Equal(t, 1, p.Reset())
	broken(t, c)
	p.Pass()
	again := dial(t, p)
	say(t, again, "two")
	hear(t, again, "two")
}

func TestDelayHoldsUpBothDirections(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	p.Delay(shortly)
	start := time.Now()
	say(t, c, "one")
	hear(t, c, "one")
	require.GreaterOrEqual(t, time.Since(start), 2*shortly)
}

func TestRefusedPortComesBackWithAccept(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	say(t, c, "one")
	hear(t, c, "one")
	p.Refuse()
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	say(t, c, "an old connection goes on")
	hear(t, c, "an old connection goes on")
	require.NoError(t, p.Accept())
	again := dial(t, p)
	say(t, again, "two")
	hear(t, again, "two")
}

func TestCutReplyResetsAfterTheTargetHasAnswered(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	cut := p.CutReply("needle", 1)
	say(t, c, "hay")
	hear(t, c, "hay")
	require.Equal(t, "hay", <-got)
	say(t, c, "a needle in it")
	require.Equal(t, "a needle in it", <-got)
	broken(t, c)
	require.Equal(t, 1, cut.Done())

	// It was for one request.
	again := dial(t, p)
	say(t, again, "needle")
	hear(t, again, "needle")
	require.Equal(t, 1, cut.Done())
}

func TestCutReplyFindsAPatternInTwoPieces(t *testing.T) {
	address, got := echo(t)
	p := Start(t, address)
	c := dial(t, p)
	cut := p.CutReply("needle", 1)
	say(t, c, "a nee")
	hear(t, c, "a nee")
	require.Equal(t, "a nee", <-got)
	say(t, c, "dle")
	require.Equal(t, "dle", <-got)
	broken(t, c)
	require.Equal(t, 1, cut.Done())
}

func TestClientIsResetWhenTheTargetIsAway(t *testing.T) {
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
