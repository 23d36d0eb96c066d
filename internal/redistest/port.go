package redistest

import "holdfast/internal/portlock"

const host = portlock.Host

// A cluster node also listens on its bus, for other nodes, on a port that is busOffset higher:
// servers before Redis 7 know no other place for it. Both are below the ports of outgoing
// connections, like all that package portlock reserves.
const (
	firstClusterPort = 20000
	lastClusterPort  = 21999
	busOffset        = 10000
)

// freeClusterPort is [portlock.Free] for a node of a cluster and its bus.
func freeClusterPort() (portlock.Port, error) {
	return portlock.Among(firstClusterPort, lastClusterPort, busOffset)
}
