package faultproxy

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// port keeps a port of 127.0.0.1 for one proxy until it is closed, also while nobody listens on it: then connections are refused,
// and nobody else is given the port, neither to listen on nor for a connection of its own. It is a socket that is bound and does
// not listen.
type port struct {
	socket  int
	address string // "host:port"
}

func newPort() (port, error) {
	syscall.ForkLock.RLock()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return port{}, err
	}
	p := port{socket: socket}
	if err := p.bind(); err != nil {
		p.close()
		return port{}, err
	}
	return p, nil
}

// bind takes a free port, which only sockets with the same option may share.
func (p *port) bind() error {
	loopback := netip.MustParseAddr("127.0.0.1")
	if err := shared(p.socket); err != nil {
		return err
	}
	if err := unix.Bind(p.socket, &unix.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		return err
	}
	name, err := unix.Getsockname(p.socket)
	if err != nil {
		return err
	}
	number := name.(*unix.SockaddrInet4).Port
	p.address = netip.AddrPortFrom(loopback, uint16(number)).String()
	return nil
}

// listen accepts connections on the port until the listener is closed.
func (p *port) listen() (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) { failed = shared(int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
	return config.Listen(context.Background(), "tcp4", p.address)
}

func (p *port) close() { _ = unix.Close(p.socket) }

func shared(socket int) error {
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}
