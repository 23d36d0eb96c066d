package portlock

import "syscall"

// handle is what the system calls of package syscall take as a socket.
type handle = syscall.Handle
