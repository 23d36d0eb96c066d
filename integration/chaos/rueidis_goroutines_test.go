//go:build redis

package chaos

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

// TestConnectionThatRueidisForgetsIsExcusedOnlyWithSentinel does what a failover sometimes does.
// When rueidis fixes that, this test fails, and the exception can go.
func TestConnectionThatRueidisForgetsIsExcusedOnlyWithSentinel(t *testing.T) {
	server := redistest.Start(t)
	before := goleak.IgnoreCurrent()
	dialling, closed := make(chan struct{}), make(chan struct{})
	var connections atomic.Int32
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true,
		PipelineMultiplex: -1}
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer,
		_ *tls.Config) (net.Conn, error) {
		if connections.Add(1) == 2 {
			close(dialling)
			<-closed
		}
		return dialer.DialContext(ctx, "tcp", address)
	}
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	require.NoError(t, redis.Do(t.Context(),
		redis.B().ClientKill().TypeNormal().SkipmeNo().Build()).Error())
	reply := make(chan error, 1)
	go func() { reply <- redis.Do(t.Context(), redis.B().Exists().Key("name").Build()).Error() }()
	select {
	case <-dialling:
	case err := <-reply:
		require.Fail(t, "no second dial", err)
	}
	redis.Close()
	close(closed)
	require.NoError(t, <-reply, "from a client that is closed")

	of := func(a address) error {
		return goleak.Find(append(plan{Redises: []address{a}}.outlivesClose(), before)...)
	}
	require.NoError(t, of(address{Group: "group"}))
	require.ErrorContains(t, of(address{Servers: []string{server.Addr()}}),
		"rueidis.(*pipe)._background")
}
