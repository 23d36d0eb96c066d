package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/lua"
)

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
		"closed before the greeting": {nil, func(c net.Conn) { _ = c.Close() }, Refused},
		"closed in the greeting": {nil, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 10))
			_ = c.Close()
		}, Refused},
		"lost with the command": {nil, greets, Unconfirmed},
		"lost with the command, pipelining": {
			func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }, greets, Unconfirmed},
	} {
		for how, send := range map[string]func(
			*testing.T, *Calls, func(context.Context) (int, error),
		) (State, error){
			"worker": func(t *testing.T, c *Calls, command func(context.Context) (int, error),
			) (State, error) {
				_, state, err := Do(c, Release, unlimited(t), command, nil)
				return state, err
			},
			"cleanup": func(t *testing.T, c *Calls, command func(context.Context) (int, error),
			) (State, error) {
				_, err := Patiently(c, command)
				return StateOf(err), err
			},
			"caller": func(t *testing.T, c *Calls, command func(context.Context) (int, error),
			) (State, error) {
				c.heard(time.Now(), Executed)
				k := c.Begin(unlimited(t), time.Now())
				_, err := command(k)
				state, err := k.End(err)
				if state == NotSent { // it had to dial
					_, state, err = Do(c, Release, unlimited(t), command, nil)
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
						return 0, lua.Classify(redis.Do(ctx, redis.B().Ping().Build()).Error())
					})
					require.Equal(t, of.state, state, "%v", err)
					if state == Refused {
						var e *lua.Error
						require.ErrorAs(t, err, &e)
						require.Equal(t, lua.ClassTemporary, e.Class)
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
			c.heard(time.Now(), Executed)
			k := c.Begin(unlimited(t), time.Now())
			_ = k.Err()
			asked(k)
			state, _ := k.End(errLost)
			require.Equal(t, want, state)
		}
	})
}
