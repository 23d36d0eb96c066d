package faultproxy

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, target net.Conn
	cut            atomic.Pointer[Cut] // to be done at the next answer
	tail           []byte              // what the client sent last; used by the pump of requests only
	end            sync.Once
	ended          chan struct{} // closed when the connection is over: nothing is kept back any more
}

// run passes data on in both directions until the connection ends.
func (l *link) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(l.client, l.target, &l.proxy.requests, l.inspect) })
	pumps.Go(func() { l.pump(l.target, l.client, &l.proxy.replies, l.answer) })
	pumps.Wait()
}

// pump passes data from one side to the other. Whatever ends it ends the link: a half-open connection is not a fault that
// is played here.
func (l *link) pump(from, to net.Conn, g *gate, look func([]byte) error) {
	defer l.reset()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && (!g.wait(l.ended) || !l.dawdle() || look(buffer[:n]) != nil) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// dawdle waits for the proxy's delay, and returns false if the link has ended.
func (l *link) dawdle() bool {
	delay := time.Duration(l.proxy.delay.Load())
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ended:
		return false
	}
}

// inspect looks for the pattern of a cut in what the client sends. It runs in one goroutine.
func (l *link) inspect(data []byte) error {
	seen := slices.Concat(l.tail, data)
	c := l.proxy.match(seen)
	if c != nil {
		l.cut.Store(c)
		l.tail = nil // or the same request would be found twice
		return nil
	}
	keep := min(max(l.proxy.longestPattern()-1, 0), len(seen))
	l.tail = slices.Clone(seen[len(seen)-keep:])
	return nil
}

var errCut = errors.New("cut")

// answer does a cut that is due.
func (l *link) answer([]byte) error {
	c := l.cut.Load()
	if c == nil {
		return nil
	}
	c.done.Add(1)
	return errCut
}

// reset ends the link with a reset to both sides.
func (l *link) reset() {
	l.end.Do(func() {
		close(l.ended)
		sever(l.client)
		sever(l.target)
	})
}

// sever closes a connection with a reset instead of a farewell.
func sever(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is a polite one, which breaks the connection as well
	}
	_ = c.Close() // broken off is what it is to be
}
