//go:build redis

package redistest

import (
	"os"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestAppendOnlyServerRemembersItsDataAfterKill(t *testing.T) {
	s := Start(t, WithAppendOnly())
	s.Do(t, "SET", "k", "1")
	s.Kill(t)
	s.Restart(t)
	require.Equal(t, "1", s.DoString(t, "GET", "k"))
}

func TestArgumentsReachTheServer(t *testing.T) {
	s := Start(t, WithArgs("--maxmemory", "3mb"))
	require.Equal(t, map[string]string{"maxmemory": "3145728"},
		s.DoMap(t, "CONFIG", "GET", "maxmemory"))
}

func TestPasswordIsRequired(t *testing.T) {
	s := Start(t, WithPassword("secret"))
	require.Equal(t, "PONG", s.DoString(t, "PING"))
	client := s.Client(t)
	require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}})
	require.ErrorContains(t, err, "NOAUTH")
}

func TestTLSServerRefusesPlainClients(t *testing.T) {
	s := Start(t, WithTLS())
	require.Equal(t, "PONG", s.DoString(t, "PING"))
	client := s.Client(t)
	require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}})
	require.Error(t, err)
}

func TestTLSServerIsRefusedByClientsThatDoNotKnowItsAuthority(t *testing.T) {
	s := Start(t, WithTLS())
	option := s.ClientOption()
	option.TLSConfig = Start(t, WithTLS()).TLSConfig()
	_, err := rueidis.NewClient(option)
	require.ErrorContains(t, err, "certificate")
}

func TestServerUsesNoFixedDirectory(t *testing.T) {
	s := Start(t)
	dir := s.DoMap(t, "CONFIG", "GET", "dir")["dir"]
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.NotEqual(t, wd, dir)
}
