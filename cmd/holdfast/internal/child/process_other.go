//go:build unix && !linux

package child

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/status"
)

// now returns nanoseconds of a clock that all processes share.
func now() int64 { return time.Now().UnixNano() }

// instant returns an instant as one of now.
func instant(t time.Time) int64 { return now() + int64(time.Until(t)) }

// attributes returns those of a command: a group of its own. It is killed by the guard alone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func moreSignals() []os.Signal { return nil }

// ended is the exit status of the only child that is waited for, once it has ended.
var ended atomic.Int64

// awaitChange blocks until a child was stopped, and returns by which signal, or has ended: 0. There
// is no way to look without giving up the process id, which its group keeps while it has members.
func awaitChange(pid int) (stopped syscall.Signal, err error) {
	for {
		var changed unix.WaitStatus
		_, err := unix.Wait4(pid, &changed, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case changed.Stopped():
			return changed.StopSignal(), nil
		default:
			ended.Store(int64(status.Of(syscall.WaitStatus(changed))))
			return 0, nil
		}
	}
}

// reap returns the exit status of the child that has ended.
func reap(int) int { return int(ended.Load()) }

// living returns the group if somebody in it lives who may be signalled.
func (c crew) living(func(process) bool) []process {
	if unix.Kill(-c.group, 0) != nil {
		return nil
	}
	return []process{{pid: -c.group, group: c.group, name: "a process group"}}
}

// zombies returns none: only Linux has containers.
func zombies() []int { return nil }

// user returns that it is not known.
func (process) user() int { return -1 }

// strays returns nobody: others' environments cannot be read here.
func (crew) strays() []*os.Process { return nil }

// orphaned reports whether no shell watches the group of this process, as far as its parent tells.
func orphaned() bool {
	session, err := unix.Getsid(os.Getppid())
	own, _ := unix.Getsid(0)
	return err != nil || session != own
}
