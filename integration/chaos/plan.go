package chaos

import (
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

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

// patience is for goroutines that end by themselves. A client of a cluster closes its connections in the background, and each
// waits for an answer for up to a second.
const patience = 3 * time.Second

// leftBehind finds the goroutines that are left when everything is closed. There is no patience with those of the locks.
func (p plan) leftBehind() error {
	for late := time.Now().Add(patience); ; {
		err := goleak.Find(p.outlivesClose()...) // which looks for half a second
		if err == nil || strings.Contains(err.Error(), "holdfast/") || time.Now().After(late) {
			return err
		}
	}
}

// outlivesClose is what may still run when everything is closed.
func (p plan) outlivesClose() []goleak.Option {
	outlives := []goleak.Option{
		goleak.IgnoreAnyFunction("holdfast/integration/chaos.Client.func1"),
		// What rueidis does not wait for: see redistest.VerifyMain.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
	if slices.ContainsFunc(p.Redises, func(a address) bool { return a.Group != "" }) {
		// A Sentinel client of rueidis 1.0.79 closes the connections to a master when there is another. One that is
		// being dialled just then is put where the closed one was (mux._pipe) and stays open until its server ends. A
		// subscription that the locks forget looks the same here, but not in the other scenarios.
		outlives = append(outlives,
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._background"),
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._background.func1"),
		)
	}
	return outlives
}
