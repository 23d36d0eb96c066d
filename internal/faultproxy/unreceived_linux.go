package faultproxy

import (
	"net"
	"syscall"
	"unsafe"
)

// unreceived returns how many bytes written to a connection the other side has not received yet.
func unreceived(c net.Conn) int {
	var size int32
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0 // it is closed: nothing more will be received
	}
	_ = raw.Control(func(fd uintptr) { // an error means that it is closed
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ,
			uintptr(unsafe.Pointer(&size)))
	})
	return int(size)
}
