package chaos

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

// patience is for goroutines that end by themselves. A client of a cluster closes its connections in the background, and each
// waits for an answer for up to a second.
const patience = 3 * time.Second

// leftBehind finds the goroutines of a process that are left when everything is closed. There is no patience with those of the
// locks.
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
	outlives := append(redistest.OutlivesClose(), goleak.IgnoreAnyFunction("holdfast/integration/chaos.Client.func1"))
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
