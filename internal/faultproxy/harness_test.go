package faultproxy

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// soon is more than enough for what must happen; shortly is how long a test watches that something
// does not happen.
const (
	soon    = 5 * time.Second
	shortly = 50 * time.Millisecond
)

// echo returns a proxy in front of a target that replies to each request with its text. got
// receives the texts.
func echo(t *testing.T) (p *Proxy, got <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	heard := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				requests := newFrameReader(c, true)
				for {
					f, err := requests.next()
					if err != nil {
						return
					}
					text := strings.Join(f.words(), " ")
					heard <- text
					if _, err := c.Write([]byte(bulk(text))); err != nil {
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-done
	})
	return Start(t, listener.Addr().String()), heard
}

// heard returns what is received next.
func heard(t *testing.T, got <-chan string) string {
	t.Helper()
	select {
	case text := <-got:
		return text
	case <-time.After(soon):
		require.FailNow(t, "nothing is received")
		return ""
	}
}

// list returns an array, or a push, of strings and of what is a frame already.
func list(kind string, values ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\r\n", kind, len(values))
	for _, value := range values {
		if !strings.HasPrefix(value, ":") {
			value = bulk(value)
		}
		b.WriteString(value)
	}
	return b.String()
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// caller is a client without a library: it writes and reads frames.
type caller struct {
	net.Conn
	replies *frameReader
}

func dialTo(t *testing.T, p *Proxy) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &caller{c, newFrameReader(c, false)}
}

// say sends requests, all at once; the words of each are separated by spaces.
func (c *caller) say(t *testing.T, texts ...string) {
	t.Helper()
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(list("*", strings.Split(text, " ")...))
	}
	_, err := c.Write([]byte(b.String()))
	require.NoError(t, err)
}

// hear requires that these frames arrive, and nothing before them.
func (c *caller) hear(t *testing.T, frames ...string) {
	t.Helper()
	for _, want := range frames {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
		f, err := c.replies.next()
		require.NoError(t, err)
		require.Equal(t, want, string(f.raw))
	}
}

// silent requires that nothing arrives, and that the connection still works.
func (c *caller) silent(t *testing.T) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(shortly)))
	_, err := c.replies.next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// broken requires that the connection is reset before anything arrives.
func (c *caller) broken(t *testing.T) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	_, err := c.replies.next()
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// versions runs a test with both versions of the protocol, on a connection to a server behind a
// proxy. Messages and confirmations come as arrays or as pushes.
func versions(t *testing.T,
	test func(t *testing.T, s *redistest.Server, p *Proxy, c *caller, push string),
) {
	for version, push := range map[string]string{"2": "*", "3": ">"} {
		t.Run("RESP"+version, func(t *testing.T) {
			s := redistest.Start(t)
			p := Start(t, s.Addr())
			c := dialTo(t, p)
			c.say(t, "HELLO "+version)
			_, err := c.replies.next()
			require.NoError(t, err)
			test(t, s, p, c, push)
		})
	}
}
