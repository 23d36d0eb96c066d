package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Endpoint is a name that leads to one server at a time, as one in the DNS or a proxy does.
// Connections that were made before it moves stay where they are. Its methods are safe for
// concurrent use.
type Endpoint struct{ leadsTo atomic.Pointer[Server] }

// NewEndpoint returns an endpoint that leads to a server.
func NewEndpoint(to *Server) *Endpoint {
	e := new(Endpoint)
	e.Move(to)
	return e
}

// Move has new connections lead to another server.
func (e *Endpoint) Move(to *Server) { e.leadsTo.Store(to) }

// Use has a client with these options dial the endpoint.
func (e *Endpoint) Use(option *rueidis.ClientOption) {
	option.DialCtxFn = func(
		ctx context.Context, _ string, dialer *net.Dialer, _ *tls.Config,
	) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", e.leadsTo.Load().Addr())
	}
}

// Promote makes a replica the master, and its master a replica of it, as FAILOVER does: no
// connection is closed. It returns when they have changed their roles.
func Promote(tb testing.TB, master, replica *Server) {
	tb.Helper()
	master.Do(tb, "FAILOVER", "TO", host, strconv.Itoa(replica.port))
	require.Eventually(tb,
		func() bool { return master.role() == "slave" && replica.role() == "master" },
		startTimeout, 10*time.Millisecond, "%s does not become the master", replica.Addr())
}
