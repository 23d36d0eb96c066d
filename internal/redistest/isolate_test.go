package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// On processes, and on the network of this machine, the server sleeps meanwhile: see
// [Server.Isolate].
func TestIsolatedServerIsOutOfReachUntilItRejoinsAtItsOldAddress(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"own network": {WithOwnNetwork()},
		"network of this machine": {WithHostNetwork()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, opts...)
			s.Do(t, "SET", "k", "v")
			open, err := s.dial(startTimeout)
			require.NoError(t, err)
			defer open.Close()
			addr := s.Addr()

			s.Isolate(t)
			require.True(t, s.Running())
			require.False(t, s.replies())
			require.NoError(t, open.SetDeadline(time.Now().Add(200*time.Millisecond)))
			_, err = open.call("PING")
			require.Error(t, err, "an open connection still works")

			s.Rejoin(t)
			require.Equal(t, addr, s.Addr())
			require.Equal(t, "v", s.DoString(t, "GET", "k"))
			s.Rejoin(t)
			s.Isolate(t) // clean-up rejoins it
			require.False(t, s.replies())
		})
	}
}

func TestIsolatedServerCanBeRestarted(t *testing.T) {
	t.Parallel()
	s := Start(t, WithOwnNetwork())
	s.Isolate(t)
	s.Restart(t)
	require.Equal(t, "PONG", s.DoString(t, "PING"))
}

func TestServerRunsUntilItIsKilled(t *testing.T) {
	t.Parallel()
	s := Start(t)
	require.True(t, s.Running())
	s.Pause(t)
	require.True(t, s.Running())
	s.Kill(t)
	require.False(t, s.Running())
	s.Restart(t)
	require.True(t, s.Running())
}
