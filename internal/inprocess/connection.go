package inprocess

import (
	"net"
	"sync"
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
	c.server.clock.catchUp()
	return n, err
}

// Write keeps a copy of p for deliver.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.unsent = append(c.unsent, parcel{append([]byte(nil), p...), time.Now()})
	c.mu.Unlock()
	select {
	case c.written <- struct{}{}:
	default:
	}
	return len(p), nil
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
