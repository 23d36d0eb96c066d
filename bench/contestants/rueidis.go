package contestants

import (
	"net"
	"time"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
)

// batched is a contestant on rueidis with the settings that take the least time of the processor
// for many callers. They were found for the raw scripts, and suit the other contestants too.
func batched(c contest.Contestant) contest.Contestant {
	return batching(c, "PipelineMultiplex -1 and MaxFlushDelay 20 us; otherwise as without")
}

// batching is a contestant whose client waits for more commands before it sends.
func batching(c contest.Contestant, setting string) contest.Contestant {
	open := c.Open
	c.Name += ", batched"
	c.Setting = setting
	c.Open = func(s contest.Setup) (contest.Client, error) {
		s.Batching = true
		return open(s)
	}
	return c
}

// rueidisOption returns the options of all clients on rueidis: its defaults. With several servers,
// dialling a dead one must not take longer than anything else.
func rueidisOption(address string, s contest.Setup) rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: []string{address}, AlwaysPipelining: s.Pipelining}
	if s.Batching {
		o.PipelineMultiplex, o.MaxFlushDelay = -1, 20*time.Microsecond
	}
	if len(s.Addresses) > 1 {
		o.ForceSingleClient = true
		o.Dialer = net.Dialer{Timeout: time.Second}
	}
	return o
}

func openRueidis(address string, s contest.Setup) (rueidis.Client, error) {
	return rueidis.NewClient(rueidisOption(address, s))
}
