package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAddressIsShownWithoutItsPassword(t *testing.T) {
	require.Equal(t, "localhost:6379", server{Address: "localhost:6379"}.String())
	require.Equal(t, "rediss://host:1/2", server{Address: "rediss://user:p@ss@host:1/2"}.String())
}

func TestAddressMayBeAURL(t *testing.T) {
	option, err := server{Address: "redis://user:secret@host:1/2?dial_timeout=7s"}.option()
	require.NoError(t, err)
	require.Equal(t, []string{"host:1"}, option.InitAddress)
	require.Equal(t, "secret", option.Password)
	require.Equal(t, 2, option.SelectDB)
	require.Equal(t, 7*time.Second, option.Dialer.Timeout)
}

func TestOtherAddressesAreRefused(t *testing.T) {
	for _, address := range []string{"localhost", "http://localhost:6379", "redis://localhost/x"} {
		_, err := server{Address: address}.connect(t.Context())
		require.ErrorContains(t, err, "--redis: want host:port or redis://", "%q", address)
	}
}
