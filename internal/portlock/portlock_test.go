package portlock_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/portlock"
)

func TestPortIsReservedUntilItIsReleased(t *testing.T) {
	p, err := portlock.Free()
	require.NoError(t, err)
	again := func() error {
		other, err := portlock.Among(p.Number, p.Number)
		other.Release()
		return err
	}
	require.Error(t, again())
	listener, err := net.Listen("tcp", p.Addr())
	require.NoError(t, err)
	require.Error(t, again())
	require.NoError(t, listener.Close())
	require.Error(t, again())
	p.Release()
	// Another process may take the port for a moment.
	require.Eventually(t, func() bool { return again() == nil }, 10*time.Second,
		10*time.Millisecond)
}
