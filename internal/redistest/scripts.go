package redistest

import (
	"bufio"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/portlock"
)

// Scripts is the environment variable with the name of a shim: see [WithScripts].
const Scripts = "HOLDFAST_TEST_SCRIPTS"

// WithScripts changes the scripts that clients send: the server gets rewrite(source) instead of
// each source. [Server.Do] and [Server.Call] send scripts as they are. Between clients and the
// server is a proxy, whose address [Server.Addr] returns. Package luashim has such functions.
//
// It is for single servers without TLS. The environment variable HOLDFAST_TEST_SCRIPTS does the
// same for all of those that do not have the option: its value is an argument of [luashim.Named].
func WithScripts(rewrite func(source string) string) Option {
	return func(_ testing.TB, s *settings) { s.rewrite = rewrite }
}

// scriptProxy is a proxy of a server that changes the scripts that clients send. It knows a script
// by its SHA-1 once it has seen the source, which a client sends when the server replies NOSCRIPT.
type scriptProxy struct {
	rewrite func(source string) string
	port    portlock.Port
	work    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while it is closed
	open     map[net.Conn]struct{} // guarded by mu
	known    map[string]string     // guarded by mu; from the SHA-1 of a source to that of the new one
}

// newScriptProxy returns the proxy that the settings or the environment ask for, or nil.
func newScriptProxy(tb testing.TB, s *settings) *scriptProxy {
	tb.Helper()
	rewrite := s.rewrite
	single := s.tls == nil && !s.hostNetwork && !s.sentinel && !s.clusterNode
	if shim := os.Getenv(Scripts); rewrite == nil && shim != "" && single {
		var err error
		rewrite, err = luashim.Named(shim)
		require.NoError(tb, err, Scripts)
	}
	if rewrite == nil {
		return nil
	}
	require.True(tb, single, "redistest: scripts can be changed only for single servers without TLS")
	port, err := portlock.Free()
	require.NoError(tb, err)
	return &scriptProxy{rewrite: rewrite, port: port, open: make(map[net.Conn]struct{}),
		known: make(map[string]string)}
}

// listen accepts connections to a target until close.
func (p *scriptProxy) listen(target string) error {
	listener, err := p.port.Listen()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.serve(client, target) })
		}
	})
	return nil
}

// close refuses new connections, ends all others, and waits for their end.
func (p *scriptProxy) close() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close() // its port is free either way
		p.listener = nil
	}
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// end closes the proxy for good. tb fails if a script has used an undeclared key, which the log of
// the server says, even if the script has ignored the error.
func (p *scriptProxy) end(tb testing.TB, log string) {
	tb.Helper()
	p.close()
	p.port.Release()
	for line := range strings.Lines(log) {
		if strings.Contains(line, luashim.Undeclared+":") {
			tb.Errorf("redistest: a script %s", strings.TrimSpace(line))
		}
	}
}

// serve forwards what a client and the server send each other until one of them hangs up.
func (p *scriptProxy) serve(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.listener == nil {
		p.mu.Unlock()
		return
	}
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, client)
		delete(p.open, server)
	}()

	p.work.Go(func() {
		defer client.Close()
		defer server.Close()
		_, _ = io.Copy(client, server) // its end is that of the connection
	})
	p.requests(client, server)
}

// requests forwards requests, with changed scripts, until one side hangs up.
func (p *scriptProxy) requests(client io.Reader, server io.Writer) {
	from, to := bufio.NewReader(client), bufio.NewWriter(server)
	for {
		if from.Buffered() == 0 && to.Flush() != nil {
			return
		}
		kind, err := from.Peek(1)
		if err != nil {
			return
		}
		if kind[0] != '*' { // an inline command: it and all that follows are forwarded as they are
			if to.Flush() == nil {
				_, _ = io.Copy(server, from)
			}
			return
		}
		words, err := readRequest(from)
		if err != nil {
			return
		}
		p.change(words)
		writeRequest(to, words)
	}
}

// change replaces a script in a request, or its SHA-1 if the script is known.
func (p *scriptProxy) change(words []string) {
	if len(words) < 2 {
		return
	}
	switch strings.ToUpper(words[0]) {
	case "EVAL":
		words[1] = p.changed(words[1])
	case "EVALSHA":
		p.mu.Lock()
		defer p.mu.Unlock()
		if now, known := p.known[strings.ToLower(words[1])]; known {
			words[1] = now
		}
	case "SCRIPT":
		if len(words) == 3 && strings.EqualFold(words[1], "LOAD") {
			words[2] = p.changed(words[2])
		}
	}
}

// loads returns SCRIPT LOAD for the new source if that is the command, else nil. A script that a
// test loads is then known to clients too.
func (p *scriptProxy) loads(args []string) []string {
	if len(args) != 3 || !strings.EqualFold(args[0], "SCRIPT") || !strings.EqualFold(args[1], "LOAD") {
		return nil
	}
	return []string{"SCRIPT", "LOAD", p.changed(args[2])}
}

// changed returns the new source of a script, which is known from now on.
func (p *scriptProxy) changed(source string) string {
	now := p.rewrite(source)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[sha(source)] = sha(now)
	return now
}

// sha returns the SHA-1 of a script.
func sha(source string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(source))) }

var errMalformed = errors.New("malformed request")

// readRequest reads an array of strings.
func readRequest(from *bufio.Reader) ([]string, error) {
	n, err := readLength(from, '*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := readLength(from, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(from, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:size])
	}
	return words, nil
}

// readLength reads the length of an array or a string.
func readLength(from *bufio.Reader, kind byte) (int, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(line[1:], "\r\n"))
	if err != nil || line[0] != kind || n < 0 || n > 512<<20 {
		return 0, errMalformed
	}
	return n, nil
}

func writeRequest(to *bufio.Writer, words []string) {
	fmt.Fprintf(to, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(to, "$%d\r\n%s\r\n", len(word), word)
	}
}
