package faultproxy

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy passes connections on to a target. Its methods may be called by several goroutines, but Refuse and Accept by one at
// a time.
type Proxy struct {
	target  string
	address string

	requests gate // client to target
	replies  gate // target to client
	fresh    gate // connections that are new
	delay    atomic.Int64
	work     sync.WaitGroup
	ended    chan struct{} // closed by the clean-up

	mu       sync.Mutex
	listener net.Listener       // nil while refusing
	links    map[*link]struct{} // those that exist
	cuts     map[*Cut]struct{}  // those that are not over
}

// Start listens on a free port of 127.0.0.1 and passes connections on to target, a "host:port". tb's clean-up resets what
// is left and waits for every goroutine of the proxy.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{target: target, ended: make(chan struct{}), links: make(map[*link]struct{}), cuts: make(map[*Cut]struct{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p.address = listener.Addr().String()
	p.serve(listener)
	tb.Cleanup(p.stop)
	return p
}

// Addr is where the proxy listens, as "host:port". It stays the same.
func (p *Proxy) Addr() string { return p.address }

// HoldReplies lets requests pass and keeps what the target says, until Pass.
func (p *Proxy) HoldReplies() { p.replies.shut() }

// BlackHole keeps everything in both directions, until Pass. Connections are accepted, and get as far as the proxy.
func (p *Proxy) BlackHole() {
	p.requests.shut()
	p.replies.shut()
}

// BlackHoleNew accepts new connections and does nothing with them, until Pass. Those that exist go on.
func (p *Proxy) BlackHoleNew() { p.fresh.shut() }

// Pass ends HoldReplies, BlackHole and BlackHoleNew: what was kept is passed on, unless its connection has ended.
func (p *Proxy) Pass() {
	p.fresh.open()
	p.requests.open()
	p.replies.open()
}

// Delay holds up each piece of data for d, in each direction, so that an answer takes 2 x d longer. 0 ends that.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Reset breaks all connections off, with a reset to both sides, and returns how many there were. What the proxy kept of
// theirs is lost.
func (p *Proxy) Reset() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
	return len(p.links)
}

// Refuse closes the port: new connections are refused until Accept. Those that exist go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close() // the port is closed either way
		p.listener = nil
	}
}

// Accept ends Refuse. It fails if somebody else has taken the port meanwhile.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	refusing := p.listener == nil
	p.mu.Unlock()
	if !refusing {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err == nil {
		p.serve(listener)
	}
	return err
}

// Cut breaks connections off between a request and its reply.
type Cut struct {
	proxy   *Proxy
	pattern []byte
	left    int // guarded by proxy.mu; how many requests it is for
	done    atomic.Int64
}

// CutReply waits for requests that contain pattern. Each of the next n is passed on, and when the target answers, which
// means that it has done what it was asked to, the connection is reset and the answer lost. It is exact only on
// connections on which no other answer is due at that time. A pattern that arrives in two pieces of data is found all
// the same.
func (p *Proxy) CutReply(pattern string, n int) *Cut {
	c := &Cut{proxy: p, pattern: []byte(pattern), left: n}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts[c] = struct{}{}
	return c
}

// Done is how many connections were cut so far.
func (c *Cut) Done() int { return int(c.done.Load()) }

// match returns the cut that the data asks for, and uses it up by one.
func (p *Proxy) match(data []byte) *Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.cuts {
		if !bytes.Contains(data, c.pattern) {
			continue
		}
		if c.left--; c.left == 0 {
			delete(p.cuts, c)
		}
		return c
	}
	return nil
}

// longestPattern bounds what a link remembers to find a pattern in two pieces of data.
func (p *Proxy) longestPattern() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := 0
	for c := range p.cuts {
		longest = max(longest, len(c.pattern))
	}
	return longest
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
	if !p.fresh.wait(p.ended) {
		return
	}
	target, err := net.Dial("tcp", p.target)
	if err != nil {
		sever(client)
		return
	}
	defer target.Close()
	l := &link{proxy: p, client: client, target: target, ended: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	select {
	case <-p.ended:
		l.reset()
	default:
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) stop() {
	p.Refuse()
	close(p.ended)
	p.Reset()
	p.work.Wait()
}
