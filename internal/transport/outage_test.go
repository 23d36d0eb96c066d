package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

// inOutage runs a test with calls whose server cannot be reached, one of which may dial now. begin
// lets a command begin in the background.
func inOutage(t *testing.T, test func(t *testing.T, c *Calls, begin func(Kind, command))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		defer group.Wait()
		c := NewCalls(group, time.Second, nil)
		c.outage.leave(false, false, time.Now(), errRefused)
		time.Sleep(time.Second)
		test(t, c, func(kind Kind, send command) {
			go func() {
				b := wait.NewBudget(t.Context(), nil, time.Minute)
				_, _, _ = SendByWorker(c, kind, b, 0,
					func(_ int, ctx context.Context) (int, error) { return send(ctx) }, ignore)
			}()
			synctest.Wait()
		})
	})
}

var errRefused = &rediserr.Error{Class: rediserr.ClassTemporary, Message: "refused"}

func ignore(int, int, error) {}

// executed requires that a command is executed in time.
func executed(t *testing.T, c *Calls, kind Kind, most time.Duration) {
	t.Helper()
	began := time.Now()
	b := wait.NewBudget(t.Context(), nil, 30*time.Second)
	_, state, err := SendByWorker(c, kind, b, 0,
		func(int, context.Context) (int, error) { return 1, nil }, ignore)
	require.NoError(t, err)
	require.Equal(t, Executed, state)
	require.LessOrEqual(t, time.Since(began), most)
}

// Whatever the command that may dial waits for, a renewal does not wait for that command.
func TestRenewalsDoNotWaitForTheDialOfAnotherCommand(t *testing.T) {
	for name, kind := range map[string]Kind{
		"for a connection of the pool": Apart,
		"that hangs":                   Acquire,
	} {
		t.Run(name, func(t *testing.T) {
			inOutage(t, func(t *testing.T, c *Calls, begin func(Kind, command)) {
				dialed := make(chan struct{})
				defer close(dialed)
				begin(kind, func(context.Context) (int, error) {
					<-dialed
					return 0, nil
				})
				executed(t, c, Renew, 0)
			})
		})
	}
	t.Run("for a place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			defer group.Wait()
			c := NewCalls(group, time.Second, nil)
			_, _, replies := hanging(t, c, Acquire, mostAcquiring, time.Second)
			defer close(replies)
			c.outage.leave(false, false, time.Now(), errRefused)
			time.Sleep(time.Second)
			go func() {
				b := wait.NewBudget(t.Context(), nil, time.Minute)
				_, _, _ = SendByWorker(c, Acquire, b, 0,
					func(int, context.Context) (int, error) { return 0, nil }, ignore)
			}()
			synctest.Wait()
			executed(t, c, Renew, 0)
		})
	})
}

// rueidis has several connections. A firewall or a proxy at its limit may let no new one through
// while the others work.
func TestDialThatHangsDoesNotHoldUpCommandsOnOtherConnections(t *testing.T) {
	inOutage(t, func(t *testing.T, c *Calls, begin func(Kind, command)) {
		begin(Acquire, func(ctx context.Context) (int, error) {
			_ = ctx.Err()
			time.Sleep(5 * time.Second) // rueidis shares this dial between its callers
			return 0, errRefused
		})
		executed(t, c, Acquire, longestOutage)
	})
}

func TestCommandThatAHookEndsLetsAnotherOneDial(t *testing.T) {
	inOutage(t, func(t *testing.T, c *Calls, _ func(Kind, command)) {
		c.pool.leave(false, false, time.Now(), errRefused)
		time.Sleep(time.Second)
		require.PanicsWithValue(t, "hook", func() {
			_, _, _ = SendByWorker(c, Apart, forever(), 0,
				func(int, context.Context) (int, error) { panic("hook") }, ignore)
		})
		executed(t, c, Apart, 0)
	})
}

// What rueidis asks its context tells whether it has sent a command. That is undocumented, so this
// test has to hold for each version of it.
func TestCommandWithoutAConnectionWasNotSent(t *testing.T) {
	greets := func(conn net.Conn) { // and closes the connection when the command comes
		r := bufio.NewReader(conn)
		for line := ""; !strings.Contains(line, "PING"); line, _ = r.ReadString('\n') {
			if strings.Contains(line, "HELLO") {
				go func() {
					_, _ = io.WriteString(conn, "%1\r\n+proto\r\n:3\r\n+OK\r\n+OK\r\n")
				}()
			}
		}
		_ = conn.Close()
	}
	for name, of := range map[string]struct {
		change func(*rueidis.ClientOption)
		serve  func(net.Conn)
		state  State
	}{
		"closed before the greeting": {nil, func(c net.Conn) { _ = c.Close() }, NotExecuted},
		"closed in the greeting": {nil, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 10))
			_ = c.Close()
		}, NotExecuted},
		"lost with the command": {nil, greets, Unconfirmed},
		"lost with the command, pipelining": {
			func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }, greets, Unconfirmed},
	} {
		for how, send := range map[string]sender{
			"worker": func(t *testing.T, c *Calls, send command) (State, error) {
				_, state, err := Do(c, Release, unlimited(t), send, nil)
				return state, err
			},
			"cleanup": func(_ *testing.T, c *Calls, send command) (State, error) {
				_, err := Undo(c, send)
				return StateOf(err), err
			},
			"caller": func(t *testing.T, c *Calls, send command) (State, error) {
				c.recordReply(nil, time.Now(), Executed)
				k := c.Begin(unlimited(t), time.Now(), "")
				_, err := send(k)
				state, err := k.End(err)
				if state == NotSent { // it had to dial
					_, state, err = Do(c, Release, unlimited(t), send, nil)
				}
				return state, err
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *Calls) {
					server := fakeredis.New()
					defer server.Close()
					option := server.ClientOption()
					if of.change != nil {
						of.change(&option)
					}
					up := true
					dial := option.DialCtxFn
					option.DialCtxFn = func(ctx context.Context, a string, d *net.Dialer, tls *tls.Config,
					) (net.Conn, error) {
						if up {
							return dial(ctx, a, d, tls)
						}
						near, far := net.Pipe()
						go of.serve(far)
						return near, nil
					}
					redis, err := rueidis.NewClient(option)
					require.NoError(t, err)
					defer redis.Close()
					up = false
					server.Disconnect()
					synctest.Wait()
					// The first command notices that the connection was closed while it was idle.
					_ = redis.Do(context.Background(), redis.B().Ping().Build())
					state, err := send(t, c, func(ctx context.Context) (int, error) {
						return 0, rediserr.Classify(redis.Do(ctx, redis.B().Ping().Build()).Error())
					})
					require.Equal(t, of.state, state, "%v", err)
					if state == NotExecuted {
						var e *rediserr.Error
						require.ErrorAs(t, err, &e)
						require.Equal(t, rediserr.ClassTemporary, e.Class)
						require.Contains(t, e.Advice, "maxclients")
					}
				})
			})
		}
	}
}

// A connection may be lost between rueidis's two looks at it, which no server can time.
func TestCallThatFoundItsConnectionLostWasNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		for want, asked := range map[State]func(*Call){
			NotSent:     func(*Call) {},
			Unconfirmed: func(k *Call) { _, _ = k.Deadline() }, // rueidis is about to send
		} {
			c.recordReply(nil, time.Now(), Executed)
			k := c.Begin(unlimited(t), time.Now(), "")
			_ = k.Err()
			asked(k)
			state, _ := k.End(errLost)
			require.Equal(t, want, state)
		}
	})
}

// modeOnly is a rueidis client with nothing but a mode.
type modeOnly struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (m modeOnly) Mode() rueidis.ClientMode { return m.mode }

func TestErrorsThatWaitingHelpsAgainst(t *testing.T) {
	t.Parallel()
	readonly := fmt.Errorf("wrapped: %w",
		&rediserr.Error{Class: rediserr.ClassPermanent, Code: "READONLY"})
	closing := rediserr.Classify(rueidis.ErrClosing)
	for _, test := range []struct {
		what      string
		mode      rueidis.ClientMode
		err       error
		permanent bool
	}{
		{"a server that was a replica from the start is a wrong address",
			rueidis.ClientModeStandalone, readonly, true},
		{"Sentinel replaces a master that became a replica", rueidis.ClientModeSentinel, readonly,
			false},
		{"so does a cluster", rueidis.ClientModeCluster, readonly, false},
		{"a closed client stays closed", rueidis.ClientModeStandalone, closing, true},
		{"Sentinel closes connections to change servers", rueidis.ClientModeSentinel, closing,
			false},
		{"a client of one server does not follow redirections", rueidis.ClientModeStandalone,
			&rediserr.Error{Class: rediserr.ClassTemporary, Code: "MOVED"}, true},
		{"a client of a cluster does", rueidis.ClientModeCluster,
			&rediserr.Error{Class: rediserr.ClassTemporary, Code: "MOVED"}, false},
		{"nobody else gets the memory", rueidis.ClientModeSentinel,
			&rediserr.Error{Class: rediserr.ClassPermanent, Code: "OOM"}, true},
		{"loading ends", rueidis.ClientModeStandalone,
			&rediserr.Error{Class: rediserr.ClassTemporary, Code: "LOADING"}, false},
		{"an outcome can be asked for again", rueidis.ClientModeStandalone, errors.New("reset"),
			false},
	} {
		c := &Transport{redis: modeOnly{mode: test.mode}}
		require.Equal(t, test.permanent, c.Permanent(test.err), test.what)
	}
	c := &Transport{redis: modeOnly{mode: rueidis.ClientModeStandalone}}
	c.Wrote()
	require.False(t, c.Permanent(readonly), "the address of a master may lead to another server")
}
