package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ServerError is an error reply, as sent: "WRONGTYPE Operation against …".
type ServerError string

// Error returns the reply.
func (e ServerError) Error() string { return string(e) }

// conn speaks the part of RESP2 that plain commands need. With it, tests check the server without
// the client library under test.
type conn struct {
	net.Conn
	r      *bufio.Reader
	hidden map[string]bool // commands that have another name, see WithoutCommands
}

func newConn(c net.Conn) *conn { return &conn{Conn: c, r: bufio.NewReader(c)} }

// call sends one command and reads its reply: a string, an int64, nil or a []any of these. An error
// reply is returned as a [ServerError].
func (c *conn) call(args ...string) (any, error) {
	if c.hidden[strings.ToUpper(args[0])] {
		args = append([]string{hiddenName(args[0])}, args[1:]...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return nil, err
	}
	reply, err := c.read()
	if err != nil {
		return nil, err
	}
	if e, ok := reply.(ServerError); ok {
		return nil, e
	}
	return reply, nil
}

// read reads one reply. An error reply is a value here, because it may also be an element of an
// array.
func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty line instead of a reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ServerError(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, nil
		}
		if kind == '$' {
			return c.bulk(n)
		}
		return c.array(n)
	}
	return nil, fmt.Errorf("unknown reply %q", line)
}

func (c *conn) bulk(n int) (any, error) {
	b := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

func (c *conn) array(n int) (any, error) {
	elements := make([]any, n)
	for i := range elements {
		element, err := c.read()
		if err != nil {
			return nil, err
		}
		elements[i] = element
	}
	return elements, nil
}
