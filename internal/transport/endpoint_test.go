package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/rediserr"
)

// fillPool leaves a number of connections in the pool of a client.
func fillPool(t *testing.T, client rueidis.Client, number int) {
	t.Helper()
	for range number {
		application, release := client.Dedicate()
		require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())
		defer release()
	}
}

func TestEndpointSkipsConnectionsOfThePoolThatAreOfNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := fakeredis.New(), fakeredis.New()
		t.Cleanup(old.Close)
		t.Cleanup(next.Close)
		leadsTo := old
		option := old.ClientOption()
		option.DialCtxFn = func(
			context.Context, string, *net.Dialer, *tls.Config,
		) (net.Conn, error) {
			return leadsTo.Dial()
		}
		client, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		e := &endpoint{Client: client, wrote: new(atomic.Bool), moved: func() {},
			ended: make(chan struct{})}
		e.wrote.Store(true) // the server has accepted a write
		t.Cleanup(e.close)
		began := time.Now()

		fillPool(t, e.Client, mostStale-1)
		old.Handle("HELLO", func([]string) any { return []any{"role", "slave"} })
		next.Handle("GET", func([]string) any { return "" }) // unknown to the other
		leadsTo = next
		require.True(t, e.Follow(t.Context()), "the pool's connections lead to a replica")
		get := e.B().Get().Key("order").Build().Pin()
		require.NoError(t, e.Do(t.Context(), get).Error())

		fillPool(t, e.Client, mostStale-1)
		next.Disconnect()
		require.True(t, connectionLost(rediserr.Classify(e.Do(t.Context(), get).Error())))
		require.NoError(t, e.Do(t.Context(), get).Error(), "the pool's connections are closed")
		require.Zero(t, time.Since(began), "a command has waited")
	})
}
