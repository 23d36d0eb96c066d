//go:build redis

package redistest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Inline commands are forwarded as they are, and all that follows them.
func TestBytesOfOtherKindsPass(t *testing.T) {
	s := Start(t, withPrefix)
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer conn.Close()
	c := newConn(conn)
	_, err = c.Write([]byte("*1\r\n$4\r\nPING\r\nPING inline\r\n"))
	require.NoError(t, err)
	for _, want := range []string{"PONG", "inline"} {
		got, err := c.read()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
