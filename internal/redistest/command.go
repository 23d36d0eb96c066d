package redistest

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// commandTimeout ends a command on a server that is paused or stopped. It is long enough for a busy
// machine, because no test waits for it on purpose.
const commandTimeout = 5 * time.Second

// patience ends a command that must succeed. Such a command may be a long script.
const patience = time.Minute

// Call runs one plain command on a connection of its own and returns the reply: a string, an int64,
// nil or a []any of these. An error reply is a [ServerError]. It gives up after 5 s. Use it where
// an error is expected, or outside the test's goroutine; otherwise use [Server.Do].
func (s *Server) Call(args ...string) (any, error) {
	return s.call(commandTimeout, args)
}

func (s *Server) call(timeout time.Duration, args []string) (any, error) {
	c, err := s.dial(timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if s.scripts != nil {
		if changed := s.scripts.loads(args); changed != nil {
			if _, err := c.call(changed...); err != nil {
				return nil, err
			}
		}
	}
	return c.call(args...)
}

// Do is [Server.Call] for a command that must succeed within a minute: tb fails otherwise.
func (s *Server) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	reply, err := s.call(patience, args)
	require.NoError(tb, err, "%v", args)
	return reply
}

// DoString is [Server.Do] for a reply that is a string; nil becomes "".
func (s *Server) DoString(tb testing.TB, args ...string) string {
	tb.Helper()
	reply := s.Do(tb, args...)
	if reply == nil {
		return ""
	}
	return as[string](tb, reply, args)
}

// DoInt is [Server.Do] for a reply that is an integer.
func (s *Server) DoInt(tb testing.TB, args ...string) int64 {
	tb.Helper()
	return as[int64](tb, s.Do(tb, args...), args)
}

// DoStrings is [Server.Do] for a reply that is an array. Integers become decimal, nil becomes "".
func (s *Server) DoStrings(tb testing.TB, args ...string) []string {
	tb.Helper()
	elements := as[[]any](tb, s.Do(tb, args...), args)
	texts := make([]string, len(elements))
	for i, element := range elements {
		if element != nil {
			texts[i] = fmt.Sprint(element)
		}
	}
	return texts
}

// DoMap is [Server.Do] for a reply that is an array of names and values, such as HGETALL's.
func (s *Server) DoMap(tb testing.TB, args ...string) map[string]string {
	tb.Helper()
	texts := s.DoStrings(tb, args...)
	require.Zero(tb, len(texts)%2, "%v: an odd number of elements", args)
	m := make(map[string]string, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		m[texts[i]] = texts[i+1]
	}
	return m
}

// OfClient reports whether a key says who a client is. It is there while the client is in use, and
// for a while after the end of its process, whatever it holds.
func OfClient(key string) bool { return strings.HasPrefix(key, "holdfast_client:") }

// CallKeys returns all keys but those of [OfClient]. Any goroutine may call it.
func (s *Server) CallKeys() ([]string, error) {
	reply, err := s.Call("KEYS", "*")
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, each := range reply.([]any) {
		if key := each.(string); !OfClient(key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Keys is [Server.CallKeys] for a server that must reply: tb fails otherwise.
func (s *Server) Keys(tb testing.TB) []string {
	tb.Helper()
	keys, err := s.CallKeys()
	require.NoError(tb, err)
	return keys
}

func as[T any](tb testing.TB, reply any, args []string) T {
	tb.Helper()
	value, ok := reply.(T)
	require.True(tb, ok, "%v: reply %v is a %T", args, reply, reply)
	return value
}

// dial opens an authenticated connection on which all reads and writes end after timeout.
func (s *Server) dial(timeout time.Duration) (*conn, error) {
	deadline := time.Now().Add(timeout)
	dialer := &net.Dialer{Deadline: deadline}
	var raw net.Conn
	var err error
	if s.settings.tls != nil {
		raw, err = tls.DialWithDialer(dialer, "tcp", s.direct(), s.settings.tls.config())
	} else {
		raw, err = dialer.Dial("tcp", s.direct())
	}
	if err != nil {
		return nil, err
	}
	c := newConn(raw)
	c.hidden = s.settings.hidden
	if err := c.SetDeadline(deadline); err != nil {
		c.Close()
		return nil, err
	}
	if s.settings.password != "" {
		if _, err := c.call("AUTH", s.settings.password); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}
