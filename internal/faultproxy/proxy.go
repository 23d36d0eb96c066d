package faultproxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/portlock"
)

// Proxy passes connections on to a target. Its methods are safe for concurrent use, except that
// Refuse, Accept and Heal must not be called at the same time.
type Proxy struct {
	tb     testing.TB
	target string
	port   portlock.Port              // kept also while refusing; none in memory
	memory func() (net.Conn, error)   // connects to a target in memory; else nil
	secure atomic.Pointer[tls.Config] // for the target; nil: without TLS
	moved  atomic.Pointer[string]     // where new connections go; nil: to the target

	requests direction // client to target
	replies  direction // target to client
	fresh    gate      // new connections
	work     sync.WaitGroup
	ctx      context.Context // done when the test is over
	end      context.CancelFunc

	mu       sync.Mutex
	listener net.Listener       // nil while refusing
	links    map[*link]struct{} // the open ones
	faults   []*Fault           // those that are not over
	messages fate
}

// Start listens on a free port of 127.0.0.1 and passes connections on to target, a "host:port".
// tb's clean-up resets what is left and waits for all goroutines of the proxy.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := start(tb, target)
	require.NoError(tb, err)
	tb.Cleanup(p.stop)
	return p
}

func start(tb testing.TB, target string) (*Proxy, error) {
	port, listener, err := listenOnFreePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{tb: tb, target: target, port: port, links: make(map[*link]struct{})}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.serve(listener)
	return p, nil
}

// listenOnFreePort tries several ports, because programs that do not use portlock may take one
// first.
func listenOnFreePort() (port portlock.Port, listener net.Listener, err error) {
	for range 10 {
		port, err = portlock.Free()
		if err != nil {
			break
		}
		listener, err = net.Listen("tcp", port.Addr())
		if err == nil {
			break
		}
		port.Release()
	}
	return port, listener, err
}

// Addr returns where the proxy listens, as "host:port", for clients of this process and of others.
// It never changes.
func (p *Proxy) Addr() string { return p.port.Addr() }

// Reset breaks all connections, with a reset to both sides, and returns how many there were. What
// the proxy held of theirs is lost.
func (p *Proxy) Reset() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
	return len(p.links)
}

// MoveTo passes new connections on to another server, as an endpoint does whose name or balancer
// now means another one. Existing connections stay where they are.
func (p *Proxy) MoveTo(target string) { p.moved.Store(&target) }

// Refuse closes the port: new connections are refused until Accept. Existing ones stay.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close() // the port is closed either way
		p.listener = nil
	}
}

// Accept ends Refuse. The proxy keeps the port in between.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	refusing := p.listener == nil
	p.mu.Unlock()
	if !refusing {
		return nil
	}
	if p.memory != nil {
		p.serve(newPipes())
		return nil
	}
	listener, err := p.port.Listen()
	if err == nil {
		p.serve(listener)
	}
	return err
}

// serve accepts from listener until it is closed.
func (p *Proxy) serve(listener net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.link(client) })
		}
	})
}

// link connects a client to the target and waits until their connection has ended.
func (p *Proxy) link(client net.Conn) {
	defer client.Close()
	if !p.fresh.wait(p.ctx.Done()) {
		return
	}
	target, err := p.dial()
	if err != nil {
		sever(client)
		return
	}
	l := newLink(p, client, target)
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	if p.ctx.Err() != nil {
		l.reset()
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// dial connects to the target. The TLS handshake is left to the first write.
func (p *Proxy) dial() (net.Conn, error) {
	if p.memory != nil {
		return p.memory()
	}
	var dialer net.Dialer
	to := p.target
	if moved := p.moved.Load(); moved != nil {
		to = *moved
	}
	target, err := dialer.DialContext(p.ctx, "tcp", to)
	if config := p.secure.Load(); err == nil && config != nil {
		target = tls.Client(target, named(config, to))
	}
	return target, err
}

// named returns a configuration that knows the name of the server.
func named(config *tls.Config, address string) *tls.Config {
	config = config.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

// needFrames fails the test if there is a connection whose frames cannot be seen. The caller holds
// mu, and has just requested a fault that needs them.
func (p *Proxy) needFrames() {
	for l := range p.links {
		if l.blind {
			p.complain()
		}
	}
}

// cannotSee reports whether the frames of a link cannot be seen, which stays so. If there is a
// fault that needs them the test fails: it would happen on some connections and silently not on
// others.
func (p *Proxy) cannotSee(l *link, now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now && !l.blind {
		l.blind = true
		if len(p.faults) > 0 || p.messages != passed {
			p.complain()
		}
	}
	return l.blind
}

func (p *Proxy) complain() {
	p.tb.Errorf("faultproxy: a fault needs frames, but a connection to %s carries something else: "+
		"TLS (see faultproxy.Secure), inline or malformed commands, replication or CLIENT REPLY",
		p.target)
}

func (p *Proxy) stop() {
	p.Refuse()
	p.end()
	p.Reset()
	p.work.Wait()
	if p.memory == nil {
		p.port.Release()
	}
}
