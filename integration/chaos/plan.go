package chaos

import (
	"time"

	"github.com/redis/rueidis"

	"holdfast/integration/history"
	"holdfast/internal/faultproxy"
	"holdfast/rlock"
)

// plan is the task of a client process: one line of JSON on its standard input. The end of that
// input tells it to stop.
type plan struct {
	Process string
	Seed    uint64
	Workers int

	// Redises are independent of each other. Only RedLocks have more than one.
	Redises []address
	// Routes maps a server to its proxy.
	Routes map[string]string

	Names         map[history.Kind][]string
	Kept, Storm   []string // names of locks, see Scenario
	SyncReplicas  int
	Pool          int  // see Scenario
	Far           bool // see Scenario
	WatchdogLease time.Duration
	Command       time.Duration
	Wait          time.Duration
	Burst         time.Duration
	Pace          time.Duration
	Wander        bool
	// ReleaseOnClose is rlock.Options.ReleaseOnClose.
	ReleaseOnClose bool
	HandOver       rlock.HandOver
	Impatient      int           // see Scenario.Impatient
	Moment         time.Duration // see Scenario.Moment
	Abandoned      time.Duration // see Scenario.Abandoned
	// Durable reports that a restarted server has all its data.
	Durable bool
}

// address is how a client finds a Redis: a server, a cluster or a Sentinel group.
type address struct {
	Servers []string
	Group   string // of the Sentinels, if there are any
	Single  bool   // it passes for a single server whatever it says
}

// option returns the rueidis option of an address, by way of the proxies.
func (p plan) option(a address) rueidis.ClientOption {
	option := rueidis.ClientOption{InitAddress: a.Servers, BlockingPoolSize: p.Pool}
	option.Sentinel.MasterSet = a.Group
	option.ForceSingleClient = a.Single
	p.setTimes(&option)
	option.Sentinel.Dialer = option.Dialer
	faultproxy.Route(p.Routes)(&option)
	return option
}

// setTimes sets the times of a connection, as in a service near its Redis: a dead one is noticed.
func (p plan) setTimes(option *rueidis.ClientOption) {
	option.Dialer.Timeout = p.Command
	option.Dialer.KeepAlive = p.Command
	option.ConnWriteTimeout = 4 * p.Command
}
