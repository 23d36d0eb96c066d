package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestServerRepliesAsSoonAsStartReturns(t *testing.T) {
	s := Start(t)
	require.Equal(t, "PONG", s.DoString(t, "PING"))
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

// A busy machine may take longer than the Dialer.Timeout.
func TestFirstConnectionOfAClientIsTriedAgain(t *testing.T) {
	dialed := 0
	c := Start(t).Client(t, OneConnection, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(
			ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
		) (net.Conn, error) {
			if dialed++; dialed <= 3 {
				late, cancel := context.WithDeadline(ctx, time.Now())
				defer cancel()
				return dialer.DialContext(late, "tcp", address)
			}
			return dialer.DialContext(ctx, "tcp", address)
		}
	})
	require.NoError(t, c.Do(t.Context(), c.B().Ping().Build()).Error())
}

func TestEachTestHasAServerOfItsOwn(t *testing.T) {
	first, second := Start(t), Start(t)
	first.Do(t, "SET", "k", "1")
	require.NotEqual(t, first.Addr(), second.Addr())
	require.Equal(t, "1", first.DoString(t, "GET", "k"))
	require.Empty(t, second.DoString(t, "GET", "k"))
}

func TestServerIsGoneAfterItsTest(t *testing.T) {
	var addr string
	t.Run("with a server", func(t *testing.T) { addr = Start(t).Addr() })
	_, err := net.DialTimeout("tcp", addr, time.Second)
	require.Error(t, err)
}

func TestPausedServerIsGoneAfterItsTest(t *testing.T) {
	var addr string
	t.Run("with a paused server", func(t *testing.T) {
		s := Start(t)
		s.Client(t)
		s.Pause(t)
		addr = s.Addr()
	})
	_, err := net.DialTimeout("tcp", addr, time.Second)
	require.Error(t, err)
}

func TestKilledServerRefusesConnections(t *testing.T) {
	s := Start(t)
	s.Kill(t)
	_, err := s.Call("PING")
	require.Error(t, err)
	s.Kill(t) // there is nothing left to kill
}

func TestRestartKeepsThePortAndForgetsTheData(t *testing.T) {
	s := Start(t)
	addr := s.Addr()
	s.Do(t, "SET", "k", "1")
	s.Restart(t)
	require.Equal(t, addr, s.Addr())
	require.Empty(t, s.DoString(t, "GET", "k"))
}

func TestPausedServerRepliesOnlyAfterResume(t *testing.T) {
	s := Start(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.AlwaysPipelining = true })
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, client.Do(ctx, client.B().Ping().Build()).Error(), context.DeadlineExceeded)
	s.Resume(t)
	require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
}

func TestErrorReplyIsAServerError(t *testing.T) {
	s := Start(t)
	s.Do(t, "SET", "k", "1")
	_, err := s.Call("HGET", "k", "f")
	var reply ServerError
	require.ErrorAs(t, err, &reply)
	require.ErrorContains(t, err, "WRONGTYPE")
}

func TestRepliesKeepTheirTypes(t *testing.T) {
	s := Start(t)
	require.Equal(t, int64(2), s.DoInt(t, "HSET", "h", "a", "1", "b", ""))
	require.Equal(t, map[string]string{"a": "1", "b": ""}, s.DoMap(t, "HGETALL", "h"))
	require.Equal(t, []string{"1", ""}, s.DoStrings(t, "HMGET", "h", "a", "absent"))
	require.Equal(t, []any{int64(1), []any{"x", nil}},
		s.Do(t, "EVAL", "return {1, {'x', false}}", "0"))
}

func TestCommandStatsCountCallsSinceTheReset(t *testing.T) {
	s := Start(t)
	s.Do(t, "SET", "k", "1")
	s.ResetStats(t)
	s.Do(t, "GET", "k")
	s.Do(t, "GET", "k")
	stats := s.CommandStats(t)
	require.Equal(t, 2, stats["get"])
	require.NotContains(t, stats, "set")
}
