package faultproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// Network puts a [Proxy] before every server that its clients dial, also before those that they
// learn of from a cluster or a Sentinel. Its methods are safe for concurrent use.
type Network struct {
	tb testing.TB

	mu      sync.Mutex
	proxies map[string]*Proxy // guarded by mu; by the address of their server
	closed  bool              // guarded by mu
}

// NewNetwork returns a network with proxies for these servers, each a "host:port"; others get one
// when a client first dials them. tb's clean-up ends the proxies, see [Start].
func NewNetwork(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	n := &Network{tb: tb, proxies: make(map[string]*Proxy)}
	tb.Cleanup(n.stop)
	for _, server := range servers {
		n.To(server)
	}
	return n
}

// To returns the proxy before the server at an address, as clients dial it. It starts one if there
// is none yet.
func (n *Network) To(server string) *Proxy {
	p, err := n.to(server)
	if err != nil {
		panic(err) // no port is free, and this may not be the goroutine of the test
	}
	return p
}

var errOver = errors.New("faultproxy: the test is over")

func (n *Network) to(server string) (*Proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.proxies[server]; p != nil {
		return p, nil
	}
	if n.closed {
		return nil, errOver
	}
	p, err := start(n.tb, server)
	if err == nil {
		n.proxies[server] = p
	}
	return p, err
}

// All calls f for each proxy, in the order of the servers' addresses. A server that is first dialed
// later gets a proxy without faults.
func (n *Network) All(f func(*Proxy)) {
	n.mu.Lock()
	servers := maps.Clone(n.proxies)
	n.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		f(servers[server])
	}
}

// Routes returns the proxies' addresses by those of their servers, which is what [Route] needs in
// another process.
func (n *Network) Routes() map[string]string {
	routes := make(map[string]string)
	n.All(func(p *Proxy) { routes[p.target] = p.Addr() })
	return routes
}

// Use has a client with these options dial servers through the network. Where the client would
// speak TLS, the proxy does so instead, and sees frames. The options must not have a dial function
// of their own.
func (n *Network) Use(option *rueidis.ClientOption) {
	option.DialCtxFn = func(
		ctx context.Context, server string, dialer *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		p, err := n.to(server)
		if err != nil {
			return nil, err
		}
		return p.meet(ctx, dialer, config)
	}
}

// Use has a client with these options dial the proxy in place of its server, as [Network.Use] does
// for all.
func (p *Proxy) Use(option *rueidis.ClientOption) {
	option.DialCtxFn = func(
		ctx context.Context, server string, dialer *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		if server == p.target {
			return p.meet(ctx, dialer, config)
		}
		return dial(ctx, dialer, server, config, server)
	}
}

// meet dials the proxy, which speaks TLS from then on if the client would have done so.
func (p *Proxy) meet(
	ctx context.Context, dialer *net.Dialer, config *tls.Config,
) (net.Conn, error) {
	if config != nil {
		p.secure.Store(config)
	}
	return dialer.DialContext(ctx, "tcp", p.Addr())
}

// Route has a client dial another address for each server: those of proxies, in a process that does
// not have them, see [Network.Routes]. A server without a route cannot be dialed. A client with a
// TLSConfig speaks TLS through the proxy, which then sees no frames; for a proxy that speaks TLS
// itself the client must have none.
func Route(routes map[string]string) func(*rueidis.ClientOption) {
	return func(option *rueidis.ClientOption) {
		option.DialCtxFn = func(
			ctx context.Context, server string, dialer *net.Dialer, config *tls.Config,
		) (net.Conn, error) {
			address, known := routes[server]
			if !known {
				return nil, fmt.Errorf("faultproxy: no route to %s", server)
			}
			return dial(ctx, dialer, address, config, server)
		}
	}
}

// dial connects to an address in place of a server.
func dial(
	ctx context.Context, dialer *net.Dialer, address string, config *tls.Config, server string,
) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	secure := tls.Dialer{NetDialer: dialer, Config: named(config, server)}
	return secure.DialContext(ctx, "tcp", address)
}

func (n *Network) stop() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.All((*Proxy).stop)
}
