package lua_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// fake is a server that gives every script the same reply, also of a kind or a version that is not
// at hand. The reply may be changed between two commands.
type fake struct{ reply atomic.Value }

// startFake returns a fake and a client connected to it through memory.
func startFake(tb testing.TB) (*fake, rueidis.Client) {
	tb.Helper()
	f := &fake{}
	var conns sync.WaitGroup
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"fake:6379"},
		ForceSingleClient: true,
		AlwaysRESP2:       true,
		DisableCache:      true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			client, server := net.Pipe()
			conns.Go(func() { f.serve(server) })
			return client, nil
		},
	})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		c.Close()
		conns.Wait()
	})
	return f, c
}

// says sets the reply to scripts, in the server's protocol.
func (f *fake) says(reply string) { f.reply.Store(reply) }

// refuses sets the reply to scripts to an error reply with any bytes.
func (f *fake) refuses(
	message string,
) {
	f.says(fmt.Sprintf("!%d\r\n%s\r\n", len(message), message))
}

// hangsUp makes it close the connection instead of replying.
func (f *fake) hangsUp() { f.says("") }

// serve ends when the client closes the connection.
func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	replies := make(
		chan string,
		64,
	) // more than a client has in flight: a pipe has no buffer of its own
	var writer sync.WaitGroup
	writer.Go(func() {
		for reply := range replies {
			if _, err := io.WriteString(conn, reply); err != nil {
				return
			}
		}
	})
	defer writer.Wait()
	defer close(replies)
	r := bufio.NewReader(conn)
	for {
		name, err := readCommand(r)
		if err != nil {
			return
		}
		switch name {
		case "EVALSHA", "EVAL":
			reply := f.reply.Load().(string)
			if reply == "" {
				return
			}
			replies <- reply
		default: // commands that set up, check and end a connection
			replies <- "+OK\r\n"
		}
	}
}

// readCommand reads one command and returns its name.
func readCommand(r *bufio.Reader) (string, error) {
	var words, length int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &words); err != nil {
		return "", err
	}
	var name string
	for i := range words {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &length); err != nil {
			return "", err
		}
		word := make([]byte, length+len("\r\n"))
		if _, err := io.ReadFull(r, word); err != nil {
			return "", err
		}
		if i == 0 {
			name = strings.ToUpper(string(word[:length]))
		}
	}
	return name, nil
}
