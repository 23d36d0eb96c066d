package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const host = "127.0.0.1"

// The ports tried lie below the range from which operating systems take the
// local ports of outgoing connections. Inside it, the port of a stopped server
// may be gone at its restart, and a client that redials the dead port may end up
// connected to itself.
const (
	firstPort = 22000
	lastPort  = 29999

	// A cluster node also listens on its bus, for the other nodes, which is
	// busOffset higher: servers before Redis 7 know no other place for it.
	firstClusterPort = 20000
	lastClusterPort  = 21999
	busOffset        = 10000
)

// reservation keeps a port for one server for as long as its test goes on, also
// while the server does not run: or another test's server might take the port of
// one that was killed, and answer to clients that believe it is theirs. It is a
// socket of UDP, which no server here uses: so it is seen by all processes of the
// machine, and gone with its own.
type reservation struct {
	port int
	held net.PacketConn
}

// freePort reserves a port that nobody listened on a moment ago. A process that
// reserves nothing may still take it first, so the caller has to be ready to try
// again.
func freePort() (reservation, error) { return freeAmong(firstPort, lastPort) }

// freeClusterPort is freePort for a node of a cluster and its bus.
func freeClusterPort() (reservation, error) {
	return freeAmong(firstClusterPort, lastClusterPort, busOffset)
}

// freeAmong reserves a port between first and last that is free, as are those the
// given offsets away from it.
func freeAmong(first, last int, offsets ...int) (reservation, error) {
	for range 200 {
		port := first + rand.IntN(last-first+1)
		held, err := net.ListenPacket("udp", address(port))
		if err != nil {
			continue
		}
		free := isFree(port)
		for _, offset := range offsets {
			free = free && isFree(port+offset)
		}
		if free {
			return reservation{port, held}, nil
		}
		_ = held.Close()
	}
	return reservation{}, errors.New("no free port between " + strconv.Itoa(first) + " and " + strconv.Itoa(last))
}

// end lets others have the port. A reservation of nothing may be ended too.
func (r reservation) end() {
	if r.held != nil {
		_ = r.held.Close()
	}
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	return err == nil && listener.Close() == nil
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
