// Package portlock keeps ports of 127.0.0.1 for what tests start, also while nobody listens on them.
package portlock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Host is where the ports are.
const Host = "127.0.0.1"

// The ports tried lie below the range from which operating systems take the local ports of outgoing
// connections. Inside it, a port on which nobody listens for a while may be gone when somebody wants
// to listen again, and a client that redials it may end up connected to itself.
const (
	first = 22000
	last  = 29999
)

// Port is a port that is kept for one server or proxy until Release. Nobody listens on it otherwise:
// another one might take it, and answer to clients that believe it is theirs. It is a socket of UDP,
// which nothing here uses: so it is seen by all processes of the machine, and gone with its own. The
// zero value keeps no port.
type Port struct {
	Number int
	held   net.PacketConn
}

// Free keeps a port that nobody listened on a moment ago. A process that does not use this package
// may still take it first.
func Free() (Port, error) { return Among(first, last) }

// Among keeps a port from first to last that is free, as are those the given offsets away from it.
func Among(first, last int, offsets ...int) (Port, error) {
	for range 200 {
		p := Port{Number: first + rand.IntN(last-first+1)}
		var err error
		if p.held, err = net.ListenPacket("udp", p.Addr()); err != nil {
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

// Listen listens on the port, also right after a listener there was closed: a process that was being
// forked then has a copy of it for a moment. It waits up to ten seconds for the copy to go.
func (p Port) Listen() (listener net.Listener, err error) {
	const longest = 10 * time.Second
	for began := time.Now(); time.Since(began) < longest; time.Sleep(time.Millisecond) {
		if listener, err = net.Listen("tcp", p.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return listener, err
}

// Release lets others have the port.
func (p Port) Release() {
	if p.held != nil {
		_ = p.held.Close()
	}
}

// isFree reports whether a port has no listener. It dials the port: a listener of its own, once closed,
// would live on for a moment in a process that is being forked.
func isFree(port int) bool {
	connection, err := net.DialTimeout("tcp", address(port), time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }
