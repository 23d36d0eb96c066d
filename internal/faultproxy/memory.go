package faultproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
)

// StartInMemory starts a proxy without a port, for clients and a server in this process: all three
// may live in a testing/synctest bubble. Its clients dial it by [Proxy.UseMemory].
func StartInMemory(tb testing.TB, target func() (net.Conn, error)) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, target: "memory", memory: target, links: make(map[*link]struct{})}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.serve(newPipes())
	tb.Cleanup(p.stop)
	return p
}

// UseMemory has a client with these options dial the proxy, whatever its server's address is.
func (p *Proxy) UseMemory(option *rueidis.ClientOption) {
	option.DialCtxFn = func(
		ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config,
	) (net.Conn, error) {
		p.mu.Lock()
		listener, _ := p.listener.(*pipes)
		p.mu.Unlock()
		if listener == nil {
			return nil, errRefused
		}
		return listener.dial(ctx)
	}
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// pipes is a net.Listener in memory.
type pipes struct {
	fresh  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newPipes() *pipes { return &pipes{fresh: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.fresh <- far:
		return clientEnd{near}, nil
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.fresh:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *pipes) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// clientEnd is the client's end of a pipe. It fails as a TCP connection does.
type clientEnd struct{ net.Conn }

// Write implements [net.Conn].
func (c clientEnd) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return n, err
}
