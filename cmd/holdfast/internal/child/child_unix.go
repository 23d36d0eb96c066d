//go:build unix

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/status"
)

// Child is a command that runs. Its methods are safe for concurrent use.
type Child struct {
	command Command
	group   int  // the leader's process id
	crew    crew // all that must end
	keeper  *keeper
	reports chan Report
	done    chan struct{}
	status  int // once done is closed

	mu         sync.Mutex // one thing at a time happens to the terminal
	terminal   *terminal  // nil without one; guarded by mu
	suspending bool       // this process stops, or is stopped; guarded by mu
	ended      bool       // the command has; guarded by mu
}

// Start starts a command, with the standard files of this process.
func Start(c Command) (*Child, error) {
	ch := &Child{command: c, reports: make(chan Report, 8), done: make(chan struct{})}
	var err error
	ch.keeper, err = newKeeper(c.Env, ch.reports)
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go ch.attend(started)
	if err := <-started; err != nil {
		ch.keeper.stop()
		return nil, err
	}
	go ch.relay()
	return ch, nil
}

// Until moves the deadline. The group is killed Reserve before it, and sent SIGTERM KillAfter
// before that.
func (ch *Child) Until(deadline time.Time) {
	kill := instant(deadline) - int64(ch.command.Reserve)
	ch.keeper.tell(func(o *order) { o.term, o.kill = kill-int64(ch.command.KillAfter), kill })
}

// End ends the command: the group is sent SIGTERM now, and SIGKILL after KillAfter at the latest.
func (ch *Child) End() {
	at := now()
	ch.keeper.tell(func(o *order) {
		o.term, o.kill = at, min(o.kill, at+int64(ch.command.KillAfter))
	})
}

// Kill kills the group at once.
func (ch *Child) Kill() {
	ch.keeper.tell(func(o *order) { o.term, o.kill = 0, 0 })
	ch.send(unix.SIGKILL) // also if the guard is stopped
}

// Reports returns what happens to the command.
func (ch *Child) Reports() <-chan Report { return ch.reports }

// Done returns a channel that is closed when the command and all of its group have ended.
func (ch *Child) Done() <-chan struct{} { return ch.done }

// Status returns the exit status of the command once Done is closed: 128+n for a signal.
func (ch *Child) Status() int { return ch.status }

// attend starts the command, and waits for it. The kernel kills the command when this thread ends.
func (ch *Child) attend(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := ch.start()
	if started <- err; err != nil {
		return
	}
	defer close(ch.done)
	for {
		stopped, err := awaitChange(ch.group)
		if err != nil || stopped == 0 {
			break
		}
		ch.stopped(stopped)
	}
	ch.endGroup()
	ch.keeper.stop()
	ch.status = reap(ch.group)
	children.ended(ch.group)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ended = true
	if ch.terminal != nil {
		ch.terminal.end(ch.status > status.Signal)
	}
}

// start starts the command as the leader of a group, and lets it execute when all is ready.
func (ch *Child) start() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	// Under a number that is free here, so that the command gets all files that this process was
	// given.
	ready, err := unix.FcntlInt(read.Fd(), unix.F_DUPFD, 3)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(ready) }()
	err = children.start(func() (pid int, err error) {
		ch.group, err = syscall.ForkExec(self(),
			append([]string{"holdfast", startCommand, strconv.Itoa(ready)}, ch.command.Args...),
			&syscall.ProcAttr{Env: ch.command.Env, Files: []uintptr{0, 1, 2}, Sys: attributes()})
		return ch.group, err
	})
	if err != nil {
		return err
	}
	ch.crew = crew{ch.group, 0, mark(ch.command.Env)}
	ch.crew.session, _ = unix.Getsid(0)
	ch.keeper.tell(func(o *order) { o.group, o.session = ch.crew.group, ch.crew.session })
	if !ch.command.Deadline.IsZero() {
		ch.Until(ch.command.Deadline)
	}
	ch.terminal = openTerminal(ch.group)
	_, err = write.Write([]byte{1})
	return err
}

// become is "holdfast start": it waits until the file descriptor that is its first argument says
// that it may, and becomes the command. It returns only if it cannot, with the exit status that
// shells have for that.
func become(args []string) (code int, err error) {
	if len(args) < 2 {
		return status.NotExecutable,
			errors.New("only holdfast run may start this command; use holdfast run")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return status.NotExecutable, err
	}
	args = args[1:]
	ready := os.NewFile(uintptr(fd), "ready")
	if n, _ := ready.Read(make([]byte, 1)); n == 0 {
		return status.NotExecutable, errors.New("holdfast run ended before the command started")
	}
	ready.Close()
	file, code, err := Look(args[0])
	if err != nil {
		return code, err
	}
	err = syscall.Exec(file, args, os.Environ())
	if errors.Is(err, unix.ENOEXEC) {
		// A script without #!, which shells interpret.
		err = syscall.Exec("/bin/sh", append([]string{"sh", file}, args[1:]...), os.Environ())
	}
	code = status.NotExecutable
	if errors.Is(err, fs.ErrNotExist) {
		code = status.NotFound
	}
	return code, fmt.Errorf("%s: %w", args[0], err)
}

// endGroup ends what the command left behind.
func (ch *Child) endGroup() {
	everybody := func(process) bool { return true }
	if len(ch.crew.living(everybody)) == 0 {
		return
	}
	if !ch.keeper.due() { // otherwise the command did not end by itself
		ch.reports <- Report{Event: LeftBehind}
	}
	ch.End()
	// What cannot be killed belongs to another user, or hangs in the kernel.
	const enough = 5 * time.Second
	if left := ch.crew.outlast(ch.command.KillAfter+enough, everybody); len(left) > 0 {
		ch.reports <- Report{Abandoned, survivorsOf(left)}
	}
}

// relay passes signals on to the group.
func (ch *Child) relay() {
	for {
		select {
		case s := <-ch.command.Signals:
			switch s {
			case unix.SIGTSTP:
				ch.suspend()
			case unix.SIGCONT:
				ch.resume()
			default:
				ch.send(s.(syscall.Signal))
			}
		case <-ch.done:
			return
		}
	}
}

// send sends the group a signal. It is certain to be ours until the command was waited for.
func (ch *Child) send(s syscall.Signal) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !ch.ended {
		_ = unix.Kill(-ch.group, s)
	}
}

// stopped handles that the command was stopped by a signal.
func (ch *Child) stopped(by syscall.Signal) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	t := ch.terminal
	if t == nil || ch.suspending {
		return // it is as somebody wants it; the deadline does not mind
	}
	asks := by == unix.SIGTTIN || by == unix.SIGTTOU
	switch has := t.foreground(); {
	case asks && has == t.own:
		t.give()
		_ = unix.Kill(-ch.group, unix.SIGCONT)
	case asks, by == unix.SIGTSTP, has == ch.group:
		t.take()
		_ = unix.Kill(0, unix.SIGTSTP) // also to this process, for suspend
	}
}

// suspend stops the group and this process, as a shell expects of a job. If there is no shell to
// continue it, the command is continued instead.
func (ch *Child) suspend() {
	ch.mu.Lock()
	ch.suspending = true // the command stops because of this
	ch.mu.Unlock()
	ch.send(unix.SIGTSTP)
	if orphaned() {
		ch.resume()
		return
	}
	// SIGTSTP would do nothing: once it was caught, Go's runtime does not give it up.
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
}

// resume continues the group. It gets the terminal back if it had it and this process has it now.
func (ch *Child) resume() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.suspending = false
	if ch.ended {
		return
	}
	if t := ch.terminal; t != nil && t.given && t.foreground() == t.own {
		t.give()
	}
	_ = unix.Kill(-ch.group, unix.SIGCONT)
}

// Forwarded returns the signals that a command is to get if this process does. Those that were
// ignored from the start, as with nohup, stay ignored, also by the command.
func Forwarded() []os.Signal {
	all := append([]os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGVTALRM, unix.SIGIO, unix.SIGWINCH,
		unix.SIGCONT}, moreSignals()...)
	return slices.DeleteFunc(all, signal.Ignored)
}

// JobControl returns the signals that are to be caught only while a command runs, because a process
// that only waits is stopped by them.
func JobControl() []os.Signal {
	return slices.DeleteFunc([]os.Signal{unix.SIGTSTP}, signal.Ignored)
}
