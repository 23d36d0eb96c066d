package faultproxy

import (
	"net"
	"syscall"
	"unsafe"
)

// unreceived is how many bytes the other side of a connection has not received yet of what was written.
func unreceived(c net.Conn) int {
	var size int32
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0 // it is closed, and nothing will be received any more
	}
	_ = raw.Control(func(fd uintptr) { // with an error it is closed
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&size)))
	})
	return int(size)
}
