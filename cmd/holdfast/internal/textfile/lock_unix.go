//go:build unix

package textfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory waits until no other process changes a file of a directory.
func lockDirectory(dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	// Some file systems have no locks. Then two processes may overwrite each other's counts.
	_ = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	return func() { file.Close() }, nil
}
