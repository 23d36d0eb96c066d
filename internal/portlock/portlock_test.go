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

// A process that is being forked has a copy of the listener.
func TestListenWaitsUntilNoProcessHasTheEarlierListener(t *testing.T) {
	p, err := portlock.Free()
	require.NoError(t, err)
	defer p.Release()
	before, err := p.Listen()
	require.NoError(t, err)
	copied, err := before.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, before.Close())
	time.AfterFunc(50*time.Millisecond, func() { _ = copied.Close() })
	again, err := p.Listen()
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestPortWithAListenerIsNotFree(t *testing.T) {
	p, err := portlock.Free()
	require.NoError(t, err)
	defer p.Release()
	listener, err := net.Listen("tcp", p.Addr())
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, err = portlock.Among(p.Number-1, p.Number-1, 1)
	require.Error(t, err)
}
