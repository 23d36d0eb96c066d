package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// Role is the name of a client process in locktest.Main.
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

// latestEvents is how many of the last events holder searches.
const latestEvents = 1500

// holder returns the process that was granted a lock last, after a wait, and still holds it, with a
// deadline within the given time. It returns "" if there is none.
func (l *log) holder(within time.Duration) string {
	type hold struct {
		process string
		number  int
	}
	over, granted := map[hold]bool{}, map[hold]history.Instant{}
	events := l.all()
	for _, e := range slices.Backward(events[max(0, len(events)-latestEvents):]) {
		switch one := (hold{e.Process, e.Number}); e.What {
		case history.Releasing, history.Lost:
			over[one] = true
		case history.Granted:
			if now := history.Now(); !over[one] && e.Until > now && e.Until < now.Add(within) {
				granted[one] = e.At
			}
		case history.Asked:
			if at, ok := granted[one]; ok && at.Sub(e.At) > usualPace { // it waited
				return e.Process
			}
		}
	}
	return ""
}

// realProcess is a client process, as the runner sees it.
type realProcess struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   *log
	began chan struct{} // closed when it starts to use locks
	exit  error         // valid when ended is closed

	ended <-chan struct{} // closed when it has ended and its output was read
}

// startProcess runs the program as a client process with a plan.
func startProcess(tb testing.TB, program string, p plan, l *log) *realProcess {
	tb.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), locktest.PlayPart(Role),
		"GORACE=atexit_sleep_ms=0 halt_on_error=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	c := &realProcess{name: p.Process, cmd: cmd, stdin: stdin, log: l, began: make(chan struct{})}
	c.ended, err = redistest.StartChild(cmd, func() {
		c.exit = errors.Join(c.collect(stdout), cmd.Wait())
	})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended; a stopped one dies as well
		<-c.ended
	})
	line, err := json.Marshal(p)
	require.NoError(tb, err)
	_, err = fmt.Fprintf(stdin, "%s\n", line)
	require.NoError(tb, err)
	return c
}

// collect reads the events until the process has ended.
func (c *realProcess) collect(from io.Reader) error {
	var (
		wrong error
		once  sync.Once
	)
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return wrong // a killed process may end with half a line
		}
		var e history.Event
		if err := json.Unmarshal(line, &e); err != nil {
			wrong = fmt.Errorf("it wrote %q: %w", line, err)
			continue
		}
		c.log.add(e)
		if e.What == history.Started {
			once.Do(func() { close(c.began) })
		}
	}
}

// waitUntilBegun waits until the process uses locks. One that ended instead is reported by end.
func (c *realProcess) waitUntilBegun(tb testing.TB) {
	tb.Helper()
	const limit = 3 * locktest.Timeout
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.began:
	case <-c.ended:
	case <-late.C:
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its stack is on standard error then
		<-c.ended
		require.FailNow(tb, "a process has not begun", "%s uses no lock after %v", c.name, limit)
	}
}

// signal sends a signal. A process that was killed before is no failure.
func (c *realProcess) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := c.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(tb, err, c.name)
	}
}

// kill kills the process. Its locks stay held until their leases end.
func (c *realProcess) kill(tb testing.TB) {
	tb.Helper()
	c.signal(tb, syscall.SIGKILL)
	<-c.ended
	var exit *exec.ExitError
	if !errors.As(c.exit, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.failed(fmt.Sprintf("had ended by itself before it was killed: %v", c.exit))
	}
	c.log.add(history.Event{At: history.Now(), What: history.Killed, Process: c.name})
}

// failed records that the process itself went wrong.
func (c *realProcess) failed(how string) {
	c.log.add(history.Event{At: history.Now(), What: history.Left, Process: c.name,
		Error: "process " + c.name + " " + how})
}

// stop tells the process to stop.
func (c *realProcess) stop() { _ = c.stdin.Close() } // if it does not end, the runner reports it

// end waits until the process has ended, as it was told to.
func (c *realProcess) end(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.ended:
		if c.exit != nil { // also for a data race
			c.failed(fmt.Sprintf("went wrong: %v; see what it has written to standard error",
				c.exit))
		}
	case <-late.C:
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its stack is on standard error then
		<-c.ended
		c.failed(fmt.Sprintf("has not ended %v after it was told to", limit))
	}
}
