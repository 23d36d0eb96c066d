//go:build redis

package killed_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// TestKilledRunnersCostOneRunEach kills processes while they run the function of a key. All callers
// of a key, in all processes, get the same result. The function runs once, and at most once more
// for each process that was killed while it ran, and for each run that lost its lock.
//
// With HOLDFAST_ONCE_TIME=1m, the test has 1,000 callers in 8 processes, and kills a runner each
// second. Its lease is shorter than that, so a process that stands still may lose its lock.
func TestKilledRunnersCostOneRunEach(t *testing.T) {
	processes, callers, kills, pace, lease := 4, 100, 3, time.Duration(0), 2*time.Second
	var limit <-chan time.Time
	if text := os.Getenv("HOLDFAST_ONCE_TIME"); text != "" {
		lasts, err := time.ParseDuration(text)
		require.NoError(t, err)
		processes, callers, kills, pace, lease = 8, 1000, 1<<30, time.Second, time.Second/2
		limit = time.After(lasts)
	}
	s := redistest.Start(t)
	g := group{events: make(chan report), over: make(chan struct{}),
		orders: orders{Server: s.Addr(), Lease: lease, Callers: callers / processes, Round: 1}}
	defer close(g.over)
	for range processes {
		g.start(t)
	}
	var (
		results     = map[int]string{} // by round
		allowed     = map[int]int{}    // runs besides the first
		losses      int
		killed      int
		victim      *worker // dies soon
		strike      = make(chan *worker, 1)
		last        time.Time // when a victim was chosen last
		afterKilled bool      // a later round has a result
		stopping    bool
	)
	for len(g.alive) > 0 {
		var r report
		select {
		case r = <-g.events:
		case w := <-strike:
			require.NoError(t, w.Kill())
			continue
		case <-limit:
			stopping = true
			g.stop()
			continue
		case <-time.After(6 * locktest.Timeout):
			require.FailNow(t, "no process has done anything for long")
		}
		switch w := r.by; r.What {
		case "runs":
			w.running = r.Round
			chosen := pace > 0 || rand.N(2) == 0 // else one key would cost all kills
			if chosen && victim == nil && !stopping && killed < kills && time.Since(last) >= pace {
				victim, last = w, time.Now()
				// Some die after they have stored the result, or while they do.
				time.AfterFunc(rand.N(takes+takes/4), func() { strike <- w })
			}
		case "done":
			w.running = 0
			require.Empty(t, r.Errors, "round %d", r.Round)
			allowed[r.Round] += r.Lost
			losses += r.Lost
			for _, result := range r.Results {
				first, known := results[r.Round]
				require.True(t, !known || first == result, "results of round %d differ", r.Round)
				results[r.Round] = result
			}
			afterKilled = killed == kills && r.Round > g.orders.Round
			g.orders.Round = max(g.orders.Round, r.Round)
		case "ended":
			delete(g.alive, w)
			if w != victim {
				require.True(t, stopping, "a process ended by itself")
				break
			}
			// A process that was killed after its function has returned costs no run.
			allowed[w.running]++
			victim, killed = nil, killed+1
			if !stopping {
				g.start(t)
			}
		}
		if afterKilled && !stopping {
			stopping = true
			g.stop()
		}
	}
	runs := 0
	for round := range results {
		n := int(s.DoInt(t, "INCRBY", runsOf(round), "0"))
		require.GreaterOrEqual(t, n, 1, "round %d", round)
		require.LessOrEqual(t, n, 1+allowed[round], "round %d", round)
		runs += n
	}
	require.NotZero(t, killed)
	t.Logf("%d callers in %d processes: %d keys, %d runs, %d kills, %d runs that lost their lock",
		callers, processes, len(results), runs, killed, losses)
}

// report is an event of a process. A process that has ended reports ended.
type report struct {
	event
	by *worker
}

// worker is a process that plays the role.
type worker struct {
	*locktest.Process
	running int // the round whose function it runs; 0 if none
}

// group is the processes of the test. Only the goroutine of the test uses it.
type group struct {
	orders orders
	events chan report
	over   chan struct{} // closed when nobody receives events
	alive  map[*worker]bool
}

// start starts a process in the current round.
func (g *group) start(t *testing.T) {
	t.Helper()
	w := &worker{Process: locktest.StartProcess(t, role)}
	orders, err := json.Marshal(g.orders)
	require.NoError(t, err)
	w.Tell(t, string(orders))
	if g.alive == nil {
		g.alive = map[*worker]bool{}
	}
	g.alive[w] = true
	go func() {
		lines := json.NewDecoder(w.Stdout)
		for more := true; more; {
			r := report{by: w}
			if err := lines.Decode(&r.event); err != nil { // it ended, perhaps with half a line
				r.event, more = event{What: "ended"}, false
			}
			select {
			case g.events <- r:
			case <-g.over:
				return
			}
		}
	}()
}

// stop makes all processes end after their round.
func (g *group) stop() {
	for w := range g.alive {
		_ = w.Stdin.Close() // it may just have been killed
	}
}
