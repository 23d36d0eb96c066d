package fakeredis

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
)

// connection is one client as the server sees it.
type connection struct {
	server *Server
	conn   net.Conn
	reader *bufio.Reader

	channels map[string]struct{}
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
	_, err := io.WriteString(c.conn, encode(reply))
	return err
}

func (c *connection) subscribe(channels []string) error {
	for _, channel := range channels {
		c.channels[channel] = struct{}{}
		if err := c.write(push{"subscribe", channel, len(c.channels)}); err != nil {
			return err
		}
	}
	return nil
}

// unsubscribe without channels means all of them, and gets a reply even if there are none.
func (c *connection) unsubscribe(channels []string) error {
	if len(channels) == 0 {
		for channel := range c.channels {
			channels = append(channels, channel)
		}
	}
	if len(channels) == 0 {
		return c.write(push{"unsubscribe", nil, 0})
	}
	for _, channel := range channels {
		delete(c.channels, channel)
		if err := c.write(push{"unsubscribe", channel, len(c.channels)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) close() { c.conn.Close() }
