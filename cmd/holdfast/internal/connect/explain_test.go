package connect

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Which error a refused certificate or a wrong port leads to depends on who is quicker.
func TestClosedConnectionsHaveAdvice(t *testing.T) {
	t.Parallel()
	plain, secure := rueidis.ClientOption{}, rueidis.ClientOption{TLSConfig: &tls.Config{}}
	for _, err := range []error{
		io.EOF,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET},
		&net.OpError{Op: "write", Err: syscall.ECONNRESET},
		&net.OpError{Op: "write", Err: syscall.EPIPE},
	} {
		require.Contains(t, advise(err, plain), "add --tls")
		require.Contains(t, advise(err, plain), "maxclients")
		require.Contains(t, advise(err, secure), "pass --cert")
	}
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	require.Contains(t, advise(alert, secure), "pass --cert")
	notRedis := errors.New("received unknown message type: 21")
	require.Contains(t, advise(notRedis, plain), "add --tls")
}
