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
	firstPort = 20000
	lastPort  = 31999
)

// freePort returns a port that nobody listened on a moment ago. Another process
// may still take it first, so the caller has to be ready to try again.
func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, errors.New("no free port between " + strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort))
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
