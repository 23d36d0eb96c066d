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

// Network puts a [Proxy] in front of every server that its clients dial, those included of which they learn from a cluster or
// a Sentinel. All methods may be called by several goroutines.
type Network struct {
	tb testing.TB

	mu      sync.Mutex
	proxies map[string]*Proxy // guarded by mu; by the address of their server
	closed  bool              // guarded by mu
}

// NewNetwork returns a network that has proxies for these servers, each a "host:port"; others get one when a client dials
// them first. tb's clean-up ends the proxies, see [Start].
func NewNetwork(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	n := &Network{tb: tb, proxies: make(map[string]*Proxy)}
	tb.Cleanup(n.stop)
	for _, server := range servers {
		n.To(server)
	}
	return n
}

// To is the proxy in front of the server at an address, as the clients dial it. It is started if there is none yet.
func (n *Network) To(server string) *Proxy {
	p, err := n.to(server)
	if err != nil {
		panic(err) // no port is free; and this need not be the goroutine that may end the test
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

// All does something with each proxy that there is, in the order of the servers' addresses. A server that is dialed first
// later on gets a proxy without faults.
func (n *Network) All(f func(*Proxy)) {
	n.mu.Lock()
	servers := maps.Clone(n.proxies)
	n.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		f(servers[server])
	}
}

// Routes are the addresses of the proxies that there are, by those of their servers: what [Route] needs in another process.
func (n *Network) Routes() map[string]string {
	routes := make(map[string]string)
	n.All(func(p *Proxy) { routes[p.target] = p.Addr() })
	return routes
}

// Use has a client with these options dial the servers through the network. Where the client would speak TLS, the proxy does
// so instead: what passes it are frames. The options must not have a dial function of their own.
func (n *Network) Use(option *rueidis.ClientOption) {
	option.DialCtxFn = func(ctx context.Context, server string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		p, err := n.to(server)
		if err != nil {
			return nil, err
		}
		return p.meet(ctx, dialer, config)
	}
}

// Use has a client with these options dial the proxy when it means the proxy's server, as [Network.Use] does for all.
func (p *Proxy) Use(option *rueidis.ClientOption) {
	option.DialCtxFn = func(ctx context.Context, server string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if server == p.target {
			return p.meet(ctx, dialer, config)
		}
		return dial(ctx, dialer, server, config, server)
	}
}

// meet dials the proxy, which speaks TLS from then on if the client would have done so.
func (p *Proxy) meet(ctx context.Context, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config != nil {
		p.secure.Store(config)
	}
	return dialer.DialContext(ctx, "tcp", p.Addr())
}

// Route has a client dial another address for each server that it means: those of proxies, in a process that does not have
// them, see [Network.Routes]. A server without a route cannot be dialed. A client with a TLSConfig speaks TLS through the proxy,
// which then sees no frames; with a proxy that speaks TLS itself the client must have none.
func Route(routes map[string]string) func(*rueidis.ClientOption) {
	return func(option *rueidis.ClientOption) {
		option.DialCtxFn = func(ctx context.Context, server string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
			address, known := routes[server]
			if !known {
				return nil, fmt.Errorf("faultproxy: no route to %s", server)
			}
			return dial(ctx, dialer, address, config, server)
		}
	}
}

// dial connects to an address where a server is to be found.
func dial(ctx context.Context, dialer *net.Dialer, address string, config *tls.Config, server string) (net.Conn, error) {
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
