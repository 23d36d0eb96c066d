package worker

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Shared is a page of memory that processes share. It holds what a lock protects in a benchmark,
// and keeps two processes in step.
type Shared struct {
	words []int64
	bytes []byte
}

// sharedBytes is enough for two words per lock, in cache lines of their own, for many locks.
const sharedBytes = 1 << 16

// NewShared makes a page of zeros, and returns the path by which other processes open it. remove
// removes the path; processes that have it open keep it.
func NewShared() (path string, remove func(), err error) {
	dir := "/dev/shm" // memory, if it exists
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "holdfast-bench")
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if err := f.Truncate(sharedBytes); err != nil {
		_ = os.Remove(f.Name())
		return "", nil, err
	}
	return f.Name(), func() { _ = os.Remove(f.Name()) }, nil
}

// OpenShared maps the page.
func OpenShared(path string) (*Shared, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bytes, err := unix.Mmap(int(f.Fd()), 0, sharedBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", path, err)
	}
	return &Shared{bytes: bytes,
		words: unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(bytes))), sharedBytes/8)}, nil
}

// Word returns the i-th word of the page. Whether to use it atomically is up to the caller.
func (s *Shared) Word(i int) *int64 { return &s.words[i] }

// Close unmaps the page.
func (s *Shared) Close() error { return unix.Munmap(s.bytes) }
