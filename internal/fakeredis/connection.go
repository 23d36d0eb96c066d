package fakeredis

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
)

// connection is one client as the server sees it.
type connection struct {
	server *Server
	conn   net.Conn
	reader *bufio.Reader

	mu       sync.Mutex          // held during writes, so that replies and messages do not mix
	channels map[string]struct{} // guarded by mu
}

func newConnection(s *Server, conn net.Conn) *connection {
	return &connection{
		server: s, conn: conn, reader: bufio.NewReader(conn), channels: make(map[string]struct{}),
	}
}

// serve executes commands until the client hangs up or the server closes.
func (c *connection) serve() {
	defer c.server.forget(c)
	defer c.close()
	for {
		args, err := readCommand(c.reader)
		if err != nil || !c.server.ready() {
			return
		}
		if c.execute(args) != nil {
			return
		}
	}
}

// execute executes one command and sends its reply.
func (c *connection) execute(args []string) error {
	name := strings.ToUpper(args[0])
	if handler, ok := c.server.handler(name); ok {
		return c.write(handler(args))
	}
	switch name {
	case "HELLO":
		return c.write(dictionary{"server", "redis", "version", "7.0.0", "proto", 3, "role",
			"master"})
	case "CLIENT":
		return c.write(Status("OK"))
	case "PING":
		return c.write(Status("PONG"))
	case "SUBSCRIBE":
		return c.subscribe(args[1:])
	case "UNSUBSCRIBE":
		return c.unsubscribe(args[1:])
	default:
		return c.write(errors.New("ERR unknown command '" + args[0] + "'"))
	}
}

func (c *connection) write(reply any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(reply)
}

// send writes one value. The caller holds mu.
func (c *connection) send(value any) error {
	_, err := io.WriteString(c.conn, encode(value))
	return err
}

func (c *connection) subscribe(channels []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, channel := range channels {
		c.channels[channel] = struct{}{}
		if err := c.send(push{"subscribe", channel, len(c.channels)}); err != nil {
			return err
		}
	}
	return nil
}

// unsubscribe without channels means all of them, and gets a reply even if there are none.
func (c *connection) unsubscribe(channels []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(channels) == 0 {
		for channel := range c.channels {
			channels = append(channels, channel)
		}
	}
	if len(channels) == 0 {
		return c.send(push{"unsubscribe", nil, 0})
	}
	for _, channel := range channels {
		delete(c.channels, channel)
		if err := c.send(push{"unsubscribe", channel, len(c.channels)}); err != nil {
			return err
		}
	}
	return nil
}

// publish sends a message if the channel is subscribed, and reports whether it is. A client that
// has hung up does not concern the publisher.
func (c *connection) publish(channel, message string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.channels[channel]; !ok {
		return false
	}
	return c.send(push{"message", channel, message}) == nil
}

func (c *connection) close() { c.conn.Close() }
