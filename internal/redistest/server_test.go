package redistest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

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
