// Package portlock reserves ports of 127.0.0.1 for what tests start, also while nothing listens on
// them.
package portlock

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Host is the host of the ports.
const Host = "127.0.0.1"

// The ports tried lie below the range of the local ports of outgoing connections. Inside it, a port
// without listener may be taken before its listener returns, and a client that redials it may end
// up connected to itself.
const (
	first = 22000
	last  = 29999
)

// Port is a port that is reserved for one server or proxy until Release, also while nothing listens
// on it. Otherwise another server might take it, and reply to clients that take it for their own.
// The reservation is a UDP socket, which nothing here uses: all processes of the machine see it,
// and it ends with its own. The zero value reserves no port.
type Port struct {
	Number int
	held   net.PacketConn
}

// Free reserves a port that had no listener a moment ago. A process that does not use this package
// may still take it first.
func Free() (Port, error) { return Among(first, last) }

// Among reserves a port from first to last that is free, as are the ports at the given offsets from
// it.
func Among(first, last int, offsets ...int) (Port, error) {
	for range 200 {
		p := Port{Number: first + rand.IntN(last-first+1)}
		var err error
		p.held, err = net.ListenPacket("udp", p.Addr())
		if err != nil {
			continue
		}
		free := isFree(p.Number)
		for _, offset := range offsets {
			free = free && isFree(p.Number+offset)
		}
		if free {
			return p, nil
		}
		p.Release()
	}
	return Port{}, fmt.Errorf("no free port between %d and %d", first, last)
}

// Addr returns "host:port".
func (p Port) Addr() string { return address(p.Number) }

// Listen listens on the port, also right after a listener there was closed: a process that is being
// forked has a copy of it for a moment. It waits up to ten seconds for the copy to go.
func (p Port) Listen() (listener net.Listener, err error) {
	const longest = 10 * time.Second
	for began := time.Now(); time.Since(began) < longest; time.Sleep(time.Millisecond) {
		listener, err = net.Listen("tcp", p.Addr())
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return listener, err
}

// Release ends the reservation.
func (p Port) Release() {
	if p.held != nil {
		_ = p.held.Close()
	}
}

// isFree reports whether a port has no listener and can be reached. It connects the port to itself,
// because one that merely refuses connections may be redirected: a Docker engine that is killed
// leaves such rules behind. A listener of its own would live on for a moment in a process that is
// being forked; the connection does as well, but keeps nobody from listening.
func isFree(port int) bool {
	itself := &net.TCPAddr{IP: net.ParseIP(Host), Port: port}
	dialer := net.Dialer{LocalAddr: itself, Timeout: time.Second, Control: reuse}
	connection, err := dialer.Dial("tcp", itself.String())
	if err != nil {
		return false
	}
	defer connection.Close()
	sent, got := []byte{byte(rand.IntN(256))}, make([]byte, 1)
	err = errors.Join(
		connection.(*net.TCPConn).SetLinger(0), // so that the port is not in use for a minute
		connection.SetDeadline(time.Now().Add(time.Second)))
	if err == nil {
		_, err = connection.Write(sent)
	}
	if err == nil {
		_, err = io.ReadFull(connection, got)
	}
	return err == nil && got[0] == sent[0]
}

// reuse lets others listen on the port of a socket.
func reuse(_, _ string, socket syscall.RawConn) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(handle(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	return errors.Join(err, failed)
}

func address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }
