package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is a user that no process of the tests belongs to otherwise.
const nobody = 65534

// becoming has what this test binary can do to itself before it becomes another program.
var becoming = map[string]func() error{
	// nobody gives up root.
	"nobody": func() error { return syscall.Setuid(nobody) },
	// subreaper is the parent of its descendants that have lost theirs, as PID 1 of a container is.
	"subreaper": func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) },
	// bound is root, but may not signal processes of other users.
	"bound": func() error { return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_KILL, 0, 0, 0) },
}

// become returns the arguments of a process that becomes a program, after it did what was asked
// for.
func become(as string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{self, "become", as}, args...)
}

func init() {
	if len(os.Args) < 4 || os.Args[1] != "become" {
		return
	}
	runtime.LockOSThread() // what a process may do is a property of its threads
	err := becoming[os.Args[2]]()
	if err == nil {
		var file string
		file, err = exec.LookPath(os.Args[3])
		if err == nil {
			err = syscall.Exec(file, os.Args[3:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
