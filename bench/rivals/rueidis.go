package rivals

import (
	"net"
	"time"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
)

// rueidisOption is what everybody who stands on rueidis gets: its defaults. With several servers a dial must not wait longer
// for a dead one than for anything else.
func rueidisOption(address string, s contest.Setup) rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: []string{address}, AlwaysPipelining: s.Pipelining}
	if len(s.Addresses) > 1 {
		o.ForceSingleClient = true
		o.Dialer = net.Dialer{Timeout: time.Second}
	}
	return o
}

func openRueidis(address string, s contest.Setup) (rueidis.Client, error) {
	return rueidis.NewClient(rueidisOption(address, s))
}
