//go:build unix

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// never is later than any instant of now.
const never = math.MaxInt64

// order is what the guard is to do: all of it, so that a later order replaces an earlier one. The
// instants are those of now.
type order struct {
	group      int   // the process group
	session    int   // that the group is in
	term, kill int64 // when to send each signal
	done       bool  // nothing any more
}

func (o order) String() string {
	return fmt.Sprintf("%d %d %d %d %t\n", o.group, o.session, o.term, o.kill, o.done)
}

// parseOrder is the inverse of String.
func parseOrder(line string) (o order, err error) {
	_, err = fmt.Sscanf(line, "%d %d %d %d %t", &o.group, &o.session, &o.term, &o.kill, &o.done)
	return o, err
}

func (o order) crew(mark string) crew { return crew{o.group, o.session, mark} }

// Guard is "holdfast guard": it carries out the orders that it reads, and reports what it did. It
// kills the group, and returns an error, if the orders end without one that says that it is done.
func Guard(orders io.Reader, reports io.Writer) error {
	for _, s := range Forwarded() {
		signal.Ignore(s) // it ends when run says so
	}
	signal.Ignore(unix.SIGPIPE, unix.SIGTSTP)
	received := make(chan order)
	go func() {
		defer close(received)
		for lines := bufio.NewScanner(orders); lines.Scan(); {
			o, err := parseOrder(lines.Text())
			if err != nil {
				return
			}
			received <- o
		}
	}()
	g := guarded{order: order{term: never, kill: never}, mark: mark(os.Environ()), reports: reports}
	for {
		select {
		case o, more := <-received:
			switch {
			case !more:
				g.signal(Killed, unix.SIGKILL)
				return errors.New("run has ended, or is out of its mind")
			case o.done:
				return nil
			}
			g.accept(o)
		case <-time.After(g.nap()):
		}
		g.act()
	}
}

// guarded is the group of a guard.
type guarded struct {
	order
	mark           string
	termed, killed bool
	reports        io.Writer
}

// accept follows a new order. A group that was sent SIGTERM is not given more time: it is ending.
func (g *guarded) accept(o order) {
	if g.termed {
		o.kill = min(o.kill, g.kill)
	}
	g.order = o
}

// nap returns for how long there is nothing to do. It is short, because the timers of a process
// stand still while the machine sleeps, and now does not.
func (g *guarded) nap() time.Duration {
	const longest = time.Second
	next := g.kill
	if !g.termed {
		next = min(next, g.term)
	}
	if g.killed || next-now() > int64(longest) {
		return longest
	}
	return time.Duration(max(next-now(), 0))
}

// act sends what is due.
func (g *guarded) act() {
	at := now()
	switch {
	case at >= g.kill && !g.killed:
		g.killed, g.termed = true, true
		g.signal(Killed, unix.SIGKILL)
	case at >= g.term && !g.termed:
		g.termed = true
		g.signal(Terminated, unix.SIGTERM)
		g.crew(g.mark).send(unix.SIGCONT) // it may be stopped
	}
}

// signal sends the group a signal, and reports that.
func (g *guarded) signal(r Report, s syscall.Signal) {
	g.crew(g.mark).send(s)
	fmt.Fprintln(g.reports, int(r))
}

// guard keeps a guard process for one group.
type guard struct {
	env     []string // of the command, and of the process
	reports chan<- Report
	ended   chan struct{} // closed when there is no process any more

	mu      sync.Mutex
	last    order       // guarded by mu
	input   *os.File    // of the process; guarded by mu
	process *os.Process // guarded by mu
}

// shortestLife is how long a guard must have lived to be replaced: one that fails at once would do
// so again and again.
const shortestLife = time.Second

// startGuard starts a process, which has nothing to do yet.
func startGuard(env []string, reports chan<- Report) (*guard, error) {
	g := &guard{env: env, reports: reports, ended: make(chan struct{}),
		last: order{term: never, kill: never}}
	cmd, output, err := g.start()
	if err != nil {
		return nil, err
	}
	go g.keep(cmd, output)
	return g, nil
}

// start starts a process, and gives it the last order. g.mu must be held, if g is in use.
func (g *guard) start() (*exec.Cmd, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer read.Close()
	output, reports, err := os.Pipe()
	if err != nil {
		write.Close()
		return nil, nil, err
	}
	defer reports.Close()
	cmd := exec.Command(self(), GuardCommand)
	cmd.Stdin, cmd.Stdout, cmd.Env = read, reports, g.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal can signal or stop it
	if err := cmd.Start(); err != nil {
		write.Close()
		output.Close()
		return nil, nil, err
	}
	// It must be on time, also on a busy machine. That is forbidden to most users.
	_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, -20)
	g.input, g.process = write, cmd.Process
	_, err = write.WriteString(g.last.String())
	return cmd, output, err
}

// keep passes on reports, and replaces a process that was killed, until the group needs none.
func (g *guard) keep(cmd *exec.Cmd, output *os.File) {
	defer close(g.ended)
	for {
		began := time.Now()
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var r Report
			if _, err := fmt.Sscan(lines.Text(), &r); err == nil {
				g.reports <- r
			}
		}
		output.Close()
		_ = cmd.Wait()
		g.mu.Lock()
		g.input.Close()
		if g.last.done {
			g.mu.Unlock()
			return
		}
		err := error(unix.ECHILD)
		if time.Since(began) > shortestLife {
			cmd, output, err = g.start()
		}
		if err != nil { // nothing would end the group in time
			g.last.crew(mark(g.env)).send(unix.SIGKILL)
			g.mu.Unlock()
			g.reports <- Killed
			return
		}
		g.mu.Unlock()
	}
}

// tell changes the order, and sends it. A process that is gone is told later, and one that is
// stopped goes on: it would not end, and its input would fill up.
func (g *guard) tell(change func(*order)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.last
	if change(&g.last); g.last != before {
		_ = g.process.Signal(unix.SIGCONT)
		_, _ = g.input.WriteString(g.last.String())
	}
}

// stop ends the process, and returns when it has ended.
func (g *guard) stop() {
	g.tell(func(o *order) { o.done = true })
	<-g.ended
}

// self returns the file of this program, even if another one has its name by now.
func self() string {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link
	}
	path, _ := os.Executable()
	return path
}
