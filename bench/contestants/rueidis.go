package contestants

import (
	"net"
	"time"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
)

// rueidisOption returns the options of all clients on rueidis: its defaults. With several servers,
// dialling a dead one must not take longer than anything else.
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
