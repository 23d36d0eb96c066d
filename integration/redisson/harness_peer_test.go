//go:build interop

package redisson_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
)

// classPath is the environment variable with the class path of the Java program.
const classPath = "HOLDFAST_REDISSON_CLASSPATH"

// peer is a Java process with Redisson clients. It executes the orders of one thread one after
// another, and those of several at the same time. Its methods are safe for concurrent use, except
// those that take a testing.TB.
type peer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   bytes.Buffer // its standard error, to be read when it has ended
	ended chan struct{}

	mu      sync.Mutex
	last    int64                  // id; guarded by mu
	pending map[int64]chan<- reply // orders without a reply; guarded by mu
}

// order is what a thread of the peer must do: see the doc comment of the package.
type order map[string]any

// reply is the outcome of an order.
type reply struct {
	ID      int64           `json:"id"`
	OK      bool            `json:"ok"`
	Value   json.RawMessage `json:"value"`
	Class   string          `json:"class"` // of the exception
	Message string          `json:"message"`
}

// errPeerEnded is returned for orders to a peer that can no longer reply.
var errPeerEnded = errors.New("the Java peer has ended")

// startPeer starts a Java process. Clean-up ends its input, and then it must end without an error
// unless it was killed before.
func startPeer(t testing.TB) *peer {
	t.Helper()
	path := os.Getenv(classPath)
	require.NotEmpty(t, path,
		"%s is not set: run make interop, or set it to what integration/redisson/build.sh "+
			"prints", classPath)
	// Quick to start, and small: it does little.
	p := &peer{
		cmd: exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"-Dorg.slf4j.simpleLogger.showDateTime=true",
			"-cp", path, "holdfast.peer.Peer"),
		ended:   make(chan struct{}),
		pending: make(map[int64]chan<- reply),
	}
	p.cmd.Stderr = &p.log
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.stdin = stdin
	go p.listen(stdout)
	t.Cleanup(func() { p.close(t) })
	return p
}

// listen passes replies on until the process ends.
func (p *peer) listen(stdout io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "not a reply of the Java peer: %q: %v\n", line, err)
			continue
		}
		p.mu.Lock()
		to := p.pending[r.ID]
		delete(p.pending, r.ID)
		p.mu.Unlock()
		if to != nil {
			to <- r
		}
	}
	_ = p.cmd.Wait() // close looks at the state
}

// do has the peer carry out an order, and waits for its reply: for ever, if the order takes that
// long, or until the peer ends.
func (p *peer) do(o order) (reply, error) {
	replies := make(chan reply, 1)
	p.mu.Lock()
	p.last++
	o["id"] = p.last
	p.pending[p.last] = replies
	line, err := json.Marshal(o)
	if err == nil {
		_, err = p.stdin.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errPeerEnded, err)
	}
	select {
	case r := <-replies:
		return r, nil
	case <-p.ended:
	}
	select {
	case r := <-replies: // its last one
		return r, nil
	default:
		return reply{}, errPeerEnded
	}
}

// kill ends the process with SIGKILL, and waits until it has ended.
func (p *peer) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	locktest.Receive(t, p.ended, "a killed Java peer has not ended")
}

// close ends the process by the end of its input.
func (p *peer) close(t testing.TB) {
	select {
	case <-p.ended: // killed by the test
		return
	default:
	}
	_ = p.stdin.Close() // it may end at this moment
	select {
	case <-p.ended:
		assert.True(t, p.cmd.ProcessState.Success(), "the Java peer ended with %v",
			p.cmd.ProcessState)
	case <-time.After(locktest.Timeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
		assert.Fail(t, "the Java peer did not end at the end of its input")
	}
	if t.Failed() {
		frames := regexp.MustCompile(`(?m)^\tat .*\n`) // of stack traces
		t.Logf("log of the Java peer:\n%s", frames.ReplaceAllString(p.log.String(), ""))
	}
}

// open makes a Redisson client in the peer. Clean-up closes it before its servers end.
func (p *peer) open(
	t testing.TB, client, topology string, addresses []string, watchdog time.Duration,
) {
	t.Helper()
	p.openWith(t, client, order{
		"op": "open", "topology": topology, "addresses": addresses,
		"watchdog": watchdog.Milliseconds(),
	})
}

// openWith makes a Redisson client as the order says.
func (p *peer) openWith(t testing.TB, client string, o order) {
	t.Helper()
	o["thread"], o["client"] = "open "+client, client
	r, err := p.do(o)
	require.NoError(t, err)
	require.True(t, r.OK, "%s: %s", r.Class, r.Message)
	t.Cleanup(func() {
		r, err := p.do(order{"thread": "open " + client, "op": "close", "client": client})
		if !errors.Is(err, errPeerEnded) { // killed by the test
			assert.NoError(t, err)
			assert.True(t, r.OK, "%s: %s", r.Class, r.Message)
		}
	})
}
