package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/internal/locktest"
)

// Role is what a client process is called in locktest.Main.
const Role = "chaos client"

// log collects the events of all processes and of the runner.
type log struct {
	mu     sync.Mutex
	events []history.Event // guarded by mu
}

func (l *log) add(e history.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) all() []history.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// process is a client process, seen by the runner.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   *log
	read  chan struct{} // closed when everything that it wrote has been read
	wrong error         // that could not be; valid when read is closed
}

// startProcess runs a client process, the given program, by a plan.
func startProcess(tb testing.TB, program string, p plan, l *log) *process {
	tb.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), locktest.PlayPart(Role), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	c := &process{name: p.Process, cmd: cmd, stdin: stdin, log: l, read: make(chan struct{})}
	go c.collect(stdout)
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill() // it may have ended
		<-c.read
		_ = cmd.Wait()
	})
	line, err := json.Marshal(p)
	require.NoError(tb, err)
	_, err = fmt.Fprintf(stdin, "%s\n", line)
	require.NoError(tb, err)
	return c
}

// collect reads the events until the process has ended.
func (c *process) collect(from io.Reader) {
	defer close(c.read)
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // half a line is the last of a process that was killed
		}
		var e history.Event
		if err := json.Unmarshal(line, &e); err != nil {
			c.wrong = fmt.Errorf("%s wrote %q: %w", c.name, line, err)
			continue
		}
		c.log.add(e)
	}
}

// signal sends a signal. That the process was killed before is no failure.
func (c *process) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(tb, err, c.name)
	}
}

// kill ends the process at once. What it held is held until the lease ends.
func (c *process) kill(tb testing.TB) {
	tb.Helper()
	c.signal(tb, syscall.SIGKILL)
	<-c.read
	require.NoError(tb, c.wrong)
	c.log.add(history.Event{At: history.Now(), What: history.Killed, Process: c.name})
}

// ask tells the process to stop.
func (c *process) ask() { _ = c.stdin.Close() } // it ends when it is told to, or the runner says that it has not

// end waits until the process has ended.
func (c *process) end(tb testing.TB, limit time.Duration) {
	tb.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.read:
		require.NoError(tb, c.wrong)
	case <-late.C:
		// Its stack is on standard error then.
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.read
		c.log.add(history.Event{At: history.Now(), What: history.Left, Process: c.name,
			Error: fmt.Sprintf("%s has not ended %v after it was told to", c.name, limit)})
	}
}
