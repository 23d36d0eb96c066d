//go:build unix

package portlock

// handle is what the system calls of package syscall take as a socket.
type handle = int
