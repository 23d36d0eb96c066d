package worker

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// AnyCore means no restriction.
const AnyCore = -1

// Pin restricts the calling thread, and what it starts, to one CPU until undo is called. The caller
// must have locked the goroutine to its thread.
func Pin(core int) (undo func(), err error) {
	if core == AnyCore {
		return func() {}, nil
	}
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("sched_setaffinity to CPU %d: %w", core, err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) }, nil // it was allowed before
}

// LastCore returns the last CPU that this process may use.
func LastCore() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	last := 0
	for core := range len(set) * 64 {
		if set.IsSet(core) {
			last = core
		}
	}
	return last
}
