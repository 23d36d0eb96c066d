package redistest

import (
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/inprocess"
)

// dialTimeout is longer than a service near its Redis would set: a busy machine may take long. When
// it takes longer yet, the first connection of a client is tried again.
const (
	dialTimeout = 2 * time.Second
	dials       = 10
)

// bufferSize is for each direction of a connection. Tests make thousands of them: the half megabyte
// of rueidis costs a tenth of their time under the race detector.
const bufferSize = 32 << 10

// ClientOption returns the options that reach the server with its password, as its user if it has
// one ([WithUser]), and with its certificate, a Dialer.Timeout of 2 s, and small buffers. All else
// is rueidis' default.
func (s *Server) ClientOption() rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: []string{s.Addr()},
		Password:    s.settings.password,
		TLSConfig:   s.TLSConfig(),
	}
	if s.settings.user != "" {
		option.Username, option.Password = s.settings.user, s.settings.secret
	}
	option.Dialer.Timeout = dialTimeout
	option.ReadBufferEachConn, option.WriteBufferEachConn = bufferSize, bufferSize
	adapt(&option)
	if _, ok := s.backend.(*inProcess); ok {
		inprocess.Adapt(&option)
	}
	return option
}

// OneConnection makes a client send all commands on one connection. By default rueidis chooses one
// of several at random, and the others do not notice what happens to it. Subscriptions have another
// connection.
func OneConnection(o *rueidis.ClientOption) { o.PipelineMultiplex = -1 }

// Client returns a new client of the server, closed in tb's clean-up. The
// mutators change [Server.ClientOption] before it is used. tb fails when the
// client cannot connect.
func (s *Server) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, s.ClientOption(), mutators)
}

func newClient(
	tb testing.TB, option rueidis.ClientOption, mutators []func(*rueidis.ClientOption),
) rueidis.Client {
	tb.Helper()
	for _, mutate := range mutators {
		mutate(&option)
	}
	client, err := rueidis.NewClient(option)
	for attempt := 1; attempt < dials && os.IsTimeout(err); attempt++ {
		client, err = rueidis.NewClient(option)
	}
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}
