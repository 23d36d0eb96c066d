package chaos

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

// goroutineWait is how long goroutines may take to end by themselves. A client of a cluster closes
// its connections in the background, and each waits for a reply for up to a second.
const goroutineWait = 3 * time.Second

// leftBehind returns the goroutines of a process that are left when everything is closed. Those of
// the locks must end at once.
func (p plan) leftBehind() error {
	for late := time.Now().Add(goroutineWait); ; {
		err := goleak.Find(p.outlivesClose()...) // it retries for half a second
		ours := err != nil && strings.Contains(err.Error(), "holdfast/")
		if err == nil || ours || time.Now().After(late) {
			return err
		}
	}
}

// outlivesClose returns what may still run when everything is closed.
func (p plan) outlivesClose() []goleak.Option {
	outlives := append(redistest.OutlivesClose(),
		goleak.IgnoreAnyFunction("holdfast/integration/chaos.Client.func1"))
	if slices.ContainsFunc(p.Redises, func(a address) bool { return a.Group != "" }) {
		// A Sentinel client of rueidis 1.0.79 closes its connections to a replaced master. A
		// connection that is being dialled replaces the closed one (mux._pipe), and stays open
		// until its server ends. A subscription that the locks forget looks the same here, but not
		// in the other scenarios.
		outlives = append(outlives,
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._background"),
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._background.func1"),
		)
	}
	return outlives
}
