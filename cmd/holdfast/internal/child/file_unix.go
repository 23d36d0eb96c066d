//go:build unix

package child

import (
	"os"
	"time"
)

// FileGuard removes a file that must not outlive a lock: at the deadline, also if this process is
// stopped by then, and when this process is killed.
type FileGuard struct {
	path    string
	keeper  *keeper
	reserve time.Duration
	removed chan struct{}
	drained chan struct{}
}

// GuardFile starts the guard of a file, which need not exist yet. The file is removed the reserve
// before the deadline that is set with Until. Close must be called.
func GuardFile(path string, reserve time.Duration) (*FileGuard, error) {
	reports := make(chan Report)
	k, err := newKeeper(os.Environ(), reports, path)
	if err != nil {
		return nil, err
	}
	g := &FileGuard{path, k, reserve, make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(g.drained)
		for removed := false; ; {
			select {
			case <-reports: // the file is removed, or nobody is left who would
				_ = os.Remove(path)
				if !removed {
					close(g.removed)
				}
				removed = true
			case <-k.ended:
				return
			}
		}
	}()
	return g, nil
}

// Until moves the deadline.
func (g *FileGuard) Until(deadline time.Time) {
	g.keeper.tell(func(o *order) { o.kill = instant(deadline) - int64(g.reserve) })
}

// Removed returns a channel that is closed when the file was removed before Close.
func (g *FileGuard) Removed() <-chan struct{} { return g.removed }

// Close removes the file, and ends the guard.
func (g *FileGuard) Close() {
	_ = os.Remove(g.path)
	g.keeper.stop()
	<-g.drained
}
