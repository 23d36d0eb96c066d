package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"holdfast/cmd/holdfast/internal/status"
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

// Guard is for other systems.
func Guard(io.Reader, io.Writer) error { return errors.New("does not work on Windows") }

// Become is for other systems.
func Become([]string) (code int, err error) {
	return status.NotExecutable, errors.New("does not work on Windows")
}

// ReapOrphans is for other systems.
func ReapOrphans() (stop func()) { return func() {} }

// Forwarded returns the signals that are caught.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// JobControl returns none.
func JobControl() []os.Signal { return nil }
