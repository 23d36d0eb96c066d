//go:build unix

package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeper keeps a guard process for one group. Its methods are safe for concurrent use.
type keeper struct {
	env     []string // of the command, and of the process
	files   []string // that the process removes when it kills the group
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

// newKeeper starts a process, which has nothing to do yet.
func newKeeper(env []string, reports chan<- Report, files ...string) (*keeper, error) {
	k := &keeper{env: env, files: files, reports: reports, ended: make(chan struct{}),
		last: order{term: never, kill: never}}
	cmd, output, err := k.start()
	if err != nil {
		return nil, err
	}
	go k.keep(cmd, output)
	return k, nil
}

// start starts a process, and gives it the last order. k.mu must be held, if k is in use.
func (k *keeper) start() (*exec.Cmd, *os.File, error) {
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
	cmd := exec.Command(self(), append([]string{guardCommand}, k.files...)...)
	cmd.Stdin, cmd.Stdout, cmd.Env = read, reports, k.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal can signal or stop it
	err = children.start(func() (pid int, err error) {
		err = cmd.Start()
		if err == nil {
			pid = cmd.Process.Pid
		}
		return pid, err
	})
	if err != nil {
		write.Close()
		output.Close()
		return nil, nil, err
	}
	// It must be on time, also on a busy machine. That is forbidden to most users.
	_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, -20)
	k.input, k.process = write, cmd.Process
	_, err = write.WriteString(k.last.String())
	return cmd, output, err
}

// keep passes on reports, and replaces a process that was killed, until the group needs none.
func (k *keeper) keep(cmd *exec.Cmd, output *os.File) {
	defer close(k.ended)
	for {
		began := time.Now()
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var e Event
			if _, err := fmt.Sscan(lines.Text(), &e); err == nil {
				k.report(e)
			}
		}
		output.Close()
		_ = cmd.Wait()
		children.ended(cmd.Process.Pid)
		k.mu.Lock()
		k.input.Close()
		if k.last.done {
			k.mu.Unlock()
			return
		}
		err := error(unix.ECHILD)
		if time.Since(began) > shortestLife {
			cmd, output, err = k.start()
		}
		if err != nil { // nothing would end the group in time
			k.last.kill = 0 // the command does not end by itself
			k.last.crew(mark(k.env)).send(unix.SIGKILL)
			k.mu.Unlock()
			k.report(Killed)
			return
		}
		k.mu.Unlock()
	}
}

// deathTime is how long processes may take to end after SIGKILL, on a busy machine.
const deathTime = 2 * time.Second

// report passes an event on. After SIGKILL it looks who lives on.
func (k *keeper) report(e Event) {
	r := Report{Event: e}
	if e == Killed {
		k.mu.Lock()
		c := k.last.crew(mark(k.env))
		k.mu.Unlock()
		r.Survivors = c.survivors(deathTime)
	}
	k.reports <- r
}

// tell changes the order, and sends it. A process that is gone is told later, and one that is
// stopped goes on: it would not end, and its input would fill up.
func (k *keeper) tell(change func(*order)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.last
	if change(&k.last); k.last != before {
		_ = k.process.Signal(unix.SIGCONT)
		_, _ = k.input.WriteString(k.last.String())
	}
}

// due reports whether the group is ending by now, because of the last order.
func (k *keeper) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now() >= min(k.last.term, k.last.kill)
}

// stop ends the process, and returns when it has ended.
func (k *keeper) stop() {
	k.tell(func(o *order) { o.done = true })
	<-k.ended
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
