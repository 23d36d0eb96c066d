package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/status"
)

// now returns nanoseconds of a clock that all processes share, and that goes on while the machine
// sleeps: locks expire meanwhile.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // cannot fail
	return t.Nano()
}

// instant returns an instant of the monotonic clock as one of now.
func instant(t time.Time) int64 {
	at := now() // first: if the machine sleeps here, the instant is too early
	return at + int64(time.Until(t))
}

// attributes returns those of a command: a group of its own, and killed with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// moreSignals returns signals of Linux alone.
func moreSignals() (all []os.Signal) {
	all = append(all, unix.SIGPWR)
	for s := syscall.Signal(35); s <= 64; s++ { // those for real time that libraries do not use
		all = append(all, s)
	}
	return all
}

// awaitChange blocks until a child was stopped, and returns by which signal, or has ended: 0. One
// that has ended stays as it is, so that its process id is not used again.
func awaitChange(pid int) (stopped syscall.Signal, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		}
		const childStopped = 5 // CLD_STOPPED
		if info.Code != childStopped {
			return 0, nil
		}
		var changed unix.WaitStatus
		_, err = unix.Wait4(pid, &changed, unix.WUNTRACED|unix.WNOHANG, nil)
		if err == nil && changed.Stopped() {
			return changed.StopSignal(), nil
		}
	}
}

// reap returns the exit status of a child that has ended, and gives up its process id.
func reap(pid int) int {
	var ended unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ended, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return status.NotExecutable
		}
		return status.Of(syscall.WaitStatus(ended))
	}
}

// processes returns those processes that can be seen and are wanted. It does not look for names
// with a pattern, because filepath.Glob would list the files of each process, which takes twenty
// times as long.
func processes(wanted func(pid int) bool) (all []process) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !wanted(pid) {
			continue // it is no process, or another one
		}
		text, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		p := process{pid: pid}
		var state string
		// pid (name) state parent group session; the name may contain anything
		rest := string(text)
		from, to := strings.IndexByte(rest, '('), strings.LastIndexByte(rest, ')')
		if from >= 0 && from < to {
			p.name, rest = rest[from+1:to], rest[to+1:]
		}
		if _, err := fmt.Sscan(rest, &state, &p.parent, &p.group, &p.session); err != nil {
			continue
		}
		p.zombie = state == "Z" || state == "X"
		all = append(all, p)
	}
	return all
}

// anybody wants each process.
func anybody(int) bool { return true }

// candidates returns the processes of the group and of the session. To ask the kernel for the two
// numbers takes a hundredth of the time in which it writes all that it knows of a process.
func (c crew) candidates() []process {
	return processes(func(pid int) bool {
		group, err := unix.Getpgid(pid)
		if err != nil || group == c.group {
			return true // or it cannot be asked about
		}
		session, err := unix.Getsid(pid)
		return err != nil || session == c.session
	})
}

// zombies returns the children of this process that have ended and were not waited for.
func zombies() (pids []int) {
	own := os.Getpid()
	for _, p := range processes(anybody) {
		if p.zombie && p.parent == own {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// user returns the effective user of a process, or -1 if it has ended.
func (p process) user() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	for line := range strings.Lines(string(text)) {
		var own, effective int
		if _, err := fmt.Sscanf(line, "Uid: %d %d", &own, &effective); err == nil {
			return effective
		}
	}
	return -1
}

// living returns those that live. Whether a process has strayed costs more to find out, so it
// leaves out those that have if one of the group is enough for the caller.
func (c crew) living(enough func(process) bool) (living []process) {
	all := c.candidates()
	for _, p := range all {
		if !p.zombie && p.group == c.group {
			living = append(living, p)
		}
	}
	if slices.ContainsFunc(living, enough) {
		return living
	}
	for _, p := range all {
		if c.strayed(p) {
			living = append(living, p)
		}
	}
	return living
}

// strayed reports whether a process has left the group, but not its session. The mark is in the
// environment that it was started with, which cannot be read of other users.
func (c crew) strayed(p process) bool {
	if c.mark == "" || p.session != c.session || p.group == c.group || p.zombie {
		return false
	}
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	return slices.Contains(strings.Split(string(env), "\x00"), c.mark)
}

// strays returns those that have left the group.
func (c crew) strays() (all []*os.Process) {
	if c.mark == "" {
		return nil
	}
	for _, p := range c.candidates() {
		if p.session != c.session || p.group == c.group {
			continue
		}
		// First, so that it cannot become another process between the check and a signal.
		found, err := os.FindProcess(p.pid)
		if err != nil {
			continue
		}
		if c.strayed(p) {
			all = append(all, found)
		} else {
			_ = found.Release()
		}
	}
	return all
}

// orphaned reports whether no shell watches the group of this process: one in the same session, in
// another group, that is the parent of one of its processes.
func orphaned() bool {
	all := make(map[int]process)
	for _, p := range processes(anybody) {
		all[p.pid] = p
	}
	own := all[os.Getpid()]
	for _, p := range all {
		parent := all[p.parent]
		if p.group == own.group && parent.group != own.group && parent.session == own.session {
			return false
		}
	}
	return true
}
