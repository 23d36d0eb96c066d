package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Conn is a plain connection for the benchmark's own commands: it sends nothing else. It is not
// safe for concurrent use.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
}

// Dial connects to a server.
func Dial(address string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Close closes the connection, and ends a Monitor on it.
func (c *Conn) Close() { c.conn.Close() }

// Do sends one command, waits for its reply, and returns it as text. An array is an error.
func (c *Conn) Do(command ...string) (string, error) {
	replies, err := c.Pipeline([][]string{command})
	if err != nil {
		return "", err
	}
	return replies[0], nil
}

// Pipeline sends many commands at once, and returns their replies.
func (c *Conn) Pipeline(commands [][]string) ([]string, error) {
	var out strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&out, "*%d\r\n", len(command))
		for _, word := range command {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.conn, out.String()); err != nil {
		return nil, err
	}
	replies := make([]string, 0, len(commands))
	for range commands {
		reply, err := c.read()
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func (c *Conn) read() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '+', ':':
		return line[1:], nil
	case '-':
		return "", errors.New(line[1:])
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", err
		}
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, bulk); err != nil {
			return "", err
		}
		return string(bulk[:n]), nil
	default:
		return "", fmt.Errorf("an answer that is neither text nor a number: %q", line)
	}
}
