package chaos

import (
	"time"

	"github.com/redis/rueidis"

	"holdfast/integration/history"
	"holdfast/internal/faultproxy"
	"holdfast/rlock"
)

// plan is what a client process is told: one line of JSON on its standard input. The end of that input tells it to stop.
type plan struct {
	Process string
	Seed    uint64
	Workers int

	// Redises are independent of each other. There is more than one only for RedLocks.
	Redises []address
	// Routes is where the proxy of a server is.
	Routes map[string]string

	Names         map[history.Kind][]string
	WatchdogLease time.Duration
	Command       time.Duration
	Wait          time.Duration
	Burst         time.Duration
	HandOver      rlock.HandOver
	Impatient     int           // see Scenario.Impatient
	Abandoned     time.Duration // see Scenario.Abandoned
	// Durable says that a server that is started again knows all that it knew.
	Durable bool
}

// address is how a client finds a Redis: a server, a cluster or a Sentinel group.
type address struct {
	Servers []string
	Group   string // of the Sentinels, if they are that
}

// option is for rueidis, and goes through the proxies.
func (p plan) option(a address) rueidis.ClientOption {
	option := rueidis.ClientOption{InitAddress: a.Servers}
	option.Sentinel.MasterSet = a.Group
	option.Dialer.Timeout = p.Command
	// As a service would, whose Redis is near: a connection that is dead is found out in time.
	option.Dialer.KeepAlive = p.Command
	option.Sentinel.Dialer = option.Dialer
	option.ConnWriteTimeout = 4 * p.Command
	faultproxy.Route(p.Routes)(&option)
	return option
}
