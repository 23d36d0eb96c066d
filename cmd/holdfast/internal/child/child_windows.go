package child

import (
	"math"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Child is a command that runs. Windows has no signals: the command is killed where others would be
// asked to end, its descendants are not, and nothing kills it if this process is.
type Child struct {
	cmd     *exec.Cmd
	after   time.Duration
	reports chan Report
	done    chan struct{}

	mu    sync.Mutex
	timer *time.Timer // kills it; guarded by mu
}

// Start starts a command, with the standard files of this process.
func Start(c Command) (*Child, error) {
	ch := &Child{cmd: exec.Command(c.Args[0], c.Args[1:]...), after: c.Reserve + c.KillAfter,
		reports: make(chan Report, 8), done: make(chan struct{})}
	ch.cmd.Env, ch.cmd.Stdin, ch.cmd.Stdout, ch.cmd.Stderr = c.Env, os.Stdin, os.Stdout, os.Stderr
	if err := ch.cmd.Start(); err != nil {
		return nil, err
	}
	if !c.Deadline.IsZero() {
		ch.Until(c.Deadline)
	}
	go func() {
		_ = ch.cmd.Wait()
		close(ch.done)
	}()
	go func() { // Ctrl-C reaches the command by itself
		for {
			select {
			case <-c.Signals:
			case <-ch.done:
				return
			}
		}
	}()
	return ch, nil
}

// Until moves the deadline. The command is killed where others are sent SIGTERM.
func (ch *Child) Until(deadline time.Time) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.timer != nil {
		ch.timer.Stop()
	}
	ch.timer = time.AfterFunc(time.Until(deadline)-ch.after, ch.Kill)
}

// End ends the command.
func (ch *Child) End() { ch.Kill() }

// Kill kills the command.
func (ch *Child) Kill() {
	select {
	case ch.reports <- Report{Event: Killed}:
	default: // said before
	}
	_ = ch.cmd.Process.Kill()
}

// Reports returns what happens to the command.
func (ch *Child) Reports() <-chan Report { return ch.reports }

// Done returns a channel that is closed when the command has ended.
func (ch *Child) Done() <-chan struct{} { return ch.done }

// Status returns the exit status of the command once Done is closed.
func (ch *Child) Status() int { return ch.cmd.ProcessState.ExitCode() }

// ReapOrphans is for other systems.
func ReapOrphans() (stop func()) { return func() {} }

// Forwarded returns the signals that are caught.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// JobControl returns none.
func JobControl() []os.Signal { return nil }

// FileGuard removes a file that must not outlive a lock. If this process is killed, the file stays.
type FileGuard struct {
	path    string
	reserve time.Duration
	removed chan struct{}
	timer   *time.Timer
}

// GuardFile returns the guard of a file.
func GuardFile(path string, reserve time.Duration) (*FileGuard, error) {
	g := &FileGuard{path: path, reserve: reserve, removed: make(chan struct{})}
	remove := sync.OnceFunc(func() {
		_ = os.Remove(path)
		close(g.removed)
	})
	g.timer = time.AfterFunc(math.MaxInt64, remove)
	return g, nil
}

// Until moves the deadline.
func (g *FileGuard) Until(deadline time.Time) {
	g.timer.Reset(time.Until(deadline) - g.reserve)
}

// Removed returns a channel that is closed when the file was removed before Close.
func (g *FileGuard) Removed() <-chan struct{} { return g.removed }

// Close removes the file.
func (g *FileGuard) Close() {
	g.timer.Stop()
	_ = os.Remove(g.path)
}
