//go:build unix

package child

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family is the processes that this process has started and waits for itself.
type family struct {
	mu   sync.Mutex
	pids map[int]bool // guarded by mu
}

// children are those of this process.
var children = family{pids: make(map[int]bool)}

// start starts a process by fork. Until it is known, no orphan is reaped, which it could be taken
// for.
func (f *family) start(fork func() (pid int, err error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pid, err := fork()
	if err == nil {
		f.pids[pid] = true
	}
	return err
}

// ended forgets a process that was waited for.
func (f *family) ended(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pids, pid)
}

// reap waits for those children of this process that it has not started and that have ended.
func (f *family) reap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range zombies() {
		if !f.pids[p] {
			_, _ = unix.Wait4(p, nil, unix.WNOHANG, nil)
		}
	}
}

// ReapOrphans begins to reap what others leave to this process, until stop is called. As PID 1 of a
// container, it is the parent of all processes that have lost theirs, and nobody else reaps them.
func ReapOrphans() (stop func()) {
	// Many may end at once. The last one is the command, after which nothing needs to be reaped.
	const pause = 100 * time.Millisecond
	died, over, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		defer close(done)
		for {
			select {
			case <-died:
			case <-over:
				return
			}
			select {
			case <-time.After(pause):
				children.reap()
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(died)
		close(over)
		<-done
	}
}
