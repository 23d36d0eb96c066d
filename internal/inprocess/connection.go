package inprocess

import (
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// connection is the server's end of a client's connection. Its writes never block: what the server
// writes waits in memory until the client reads it. So a client that writes much before it reads
// cannot block the server, and a published message cannot block its publisher.
type connection struct {
	net.Conn // one end of a net.Pipe
	server   *Server
	closed   chan struct{}
	close    sync.Once
	written  chan struct{} // has a value when something was written

	mu     sync.Mutex
	unsent []parcel // guarded by mu
}

// parcel is what the server has written at once.
type parcel struct {
	data []byte
	at   time.Time
}

func newConnection(s *Server, end net.Conn) *connection {
	return &connection{
		Conn: end, server: s, closed: make(chan struct{}), written: make(chan struct{}, 1),
	}
}

// Read reads commands. The server's clock is set before they are executed.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.waitUntilRunning()
	c.server.clock.catchUp()
	return n, err
}

// Write keeps a copy of p for deliver.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.unsent = append(c.unsent, parcel{asRedisSays(p), time.Now()})
	c.mu.Unlock()
	select {
	case c.written <- struct{}{}:
	default:
	}
	return len(p), nil
}

// scriptError is how miniredis reports an error that has ended a script.
var scriptError = regexp.MustCompile(
	`^-ERR Error compiling script \(new function\): [^:]*:\d+: (.*?)(?: stack traceback:.*)?\r\n`)

// asRedisSays returns a copy of what miniredis has written, but errors of commands in scripts begin
// with the error's code, which decides what a client makes of it.
func asRedisSays(p []byte) []byte {
	if !bytes.HasPrefix(p, []byte("-ERR Error compiling script")) {
		return bytes.Clone(p)
	}
	m := scriptError.FindSubmatch(p)
	if m == nil {
		return bytes.Clone(p)
	}
	code, _, _ := bytes.Cut(m[1], []byte(" "))
	prefix := "-"
	if len(code) == 0 || !bytes.Equal(code, bytes.ToUpper(code)) {
		prefix = "-ERR "
	}
	return append(append([]byte(prefix), m[1]...), append([]byte("\r\n"), p[len(m[0]):]...)...)
}

// deliver sends to the client what was written, until the connection is closed.
func (c *connection) deliver() {
	for {
		select {
		case <-c.written:
		case <-c.closed:
			return
		}
		c.mu.Lock()
		parcels := c.unsent
		c.unsent = nil
		c.mu.Unlock()
		for _, p := range parcels {
			if !c.server.waitUntilDue(p.at, c.closed) {
				return
			}
			if _, err := c.Conn.Write(p.data); err != nil {
				return // the client has hung up, which the server notices when it reads
			}
		}
	}
}

// Close closes the connection. The server calls it last: its subscriptions have ended by then.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.close.Do(func() { close(c.closed) })
	return err
}

// clientEnd is the client's end of a connection. It fails as a TCP connection does.
type clientEnd struct{ net.Conn }

// Write writes commands.
func (ce clientEnd) Write(p []byte) (int, error) {
	n, err := ce.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return n, err
}
