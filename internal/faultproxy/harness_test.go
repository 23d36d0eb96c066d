package faultproxy

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
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

// echo is a target that replies to each request with its text. got receives the texts.
func echo(t *testing.T) (address string, got <-chan string) {
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
					answer := f.raw
					text := string(f.raw)
					if !f.opaque {
						text = strings.Join(f.words(), " ")
						answer = []byte(bulk(text))
					}
					heard <- text
					if _, err := c.Write(answer); err != nil {
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
	return listener.Addr().String(), heard
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// request returns a command as it is sent; its words are separated by spaces.
func request(text string) string {
	words := strings.Split(text, " ")
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		b.WriteString(bulk(word))
	}
	return b.String()
}

// caller is a client without a library: it writes and reads frames.
type caller struct {
	net.Conn
	replies *frameReader
}

func dialTo(t *testing.T, address string) *caller {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &caller{c, newFrameReader(c, false)}
}

// say sends requests, all at once.
func (c *caller) say(t *testing.T, texts ...string) {
	t.Helper()
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(request(text))
	}
	c.raw(t, b.String())
}

func (c *caller) raw(t *testing.T, bytes string) {
	t.Helper()
	_, err := c.Write([]byte(bytes))
	require.NoError(t, err)
}

// hear requires that texts arrive as strings, and nothing before them.
func (c *caller) hear(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		c.frame(t, bulk(text))
	}
}

// frame requires that these frames arrive, and nothing before them.
func (c *caller) frame(t *testing.T, frames ...string) {
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

// eventually waits until the condition is true.
func eventually(t *testing.T, condition func() bool, otherwise string) {
	t.Helper()
	late := time.After(timeout)
	for !condition() {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			require.FailNow(t, otherwise)
		}
	}
}

// complaints is a test that must not fail but keeps its failures.
type complaints struct {
	testing.TB
	said chan string
}

func newComplaints(t *testing.T) *complaints { return &complaints{t, make(chan string, 10)} }

func (c *complaints) Errorf(format string, args ...any) { c.said <- fmt.Sprintf(format, args...) }

// served is a Redis server behind a proxy.
func served(t *testing.T) (*redistest.Server, *Proxy) {
	t.Helper()
	s := redistest.Start(t)
	return s, Start(t, s.Addr())
}

// one returns a client of the server with one connection, through the proxy, which is set up before
// the test begins.
func one(
	t *testing.T, s *redistest.Server, p *Proxy, mutators ...func(*rueidis.ClientOption),
) rueidis.Client {
	t.Helper()
	c := s.Client(t, append(mutators, p.Use, func(o *rueidis.ClientOption) {
		o.PipelineMultiplex = -1
		o.AlwaysPipelining = true
		o.DisableRetry = true
	})...)
	t.Cleanup(p.Pass)
	require.NoError(t, do(t, c, "PING").Error())
	return c
}

// resp2 makes a client use RESP2.
func resp2(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }

func do(t *testing.T, c rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	return c.Do(t.Context(), c.B().Arbitrary(words...).Build())
}

// batch sends commands at once, on one connection.
func batch(t *testing.T, c rueidis.Client, commands ...string) []rueidis.RedisResult {
	t.Helper()
	built := make(rueidis.Commands, len(commands))
	for i, command := range commands {
		built[i] = c.B().Arbitrary(strings.Split(command, " ")...).Build()
	}
	return c.DoMulti(t.Context(), built...)
}

// values returns the results as text, errors included.
func values(results []rueidis.RedisResult) []string {
	texts := make([]string, len(results))
	for i, r := range results {
		message, err := r.ToMessage()
		switch {
		case err != nil:
			texts[i] = err.Error()
		case message.IsInt64():
			n, _ := message.AsInt64()
			texts[i] = fmt.Sprint(n)
		default:
			texts[i], _ = message.ToString()
		}
	}
	return texts
}

// versions runs a test with both versions of the protocol.
func versions(t *testing.T, test func(t *testing.T, version func(*rueidis.ClientOption))) {
	t.Run("RESP3", func(t *testing.T) { test(t, func(*rueidis.ClientOption) {}) })
	t.Run("RESP2", func(t *testing.T) { test(t, resp2) })
}
