package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// run is one scenario that is being played.
type run struct {
	tb       testing.TB
	scenario *Scenario
	seed     uint64
	dice     *rand.Rand
	log      *log
	stage    stage
	world    *world // the same, unless it is a bubble
	slots    []*slot
	modes    []rlock.HandOver // of the processes of the slots
	deck     []Fault          // faults still to be drawn
	played   map[string]int   // how often each fault was played
	// serverFaults counts the beginnings and the ends of faults of servers, one of which lasts at a
	// time: during a fault the number is odd.
	serverFaults atomic.Int64
}

// Unplanned is the fault of a run in which Sentinels took a slow master for dead. The time is
// unknown, so it lasts for the whole run.
const Unplanned = "failovers by themselves"

// slot is a client process, or its successor once it was killed.
type slot struct {
	index    int
	restarts int
	process  process
	links    []*faultproxy.Proxy
	before   []*faultproxy.Proxy // of processes before it that were not killed
	routes   map[string]string
}

// plays is locked for reading while a scenario is played, and for writing while one is judged. The
// proxies are in this process, and judging may keep it busy for ten seconds.
var plays sync.RWMutex

// Run plays a scenario for about the given time, and returns what happened and the verdict. tb
// fails if the run itself goes wrong; breaches are left to the caller. Several goroutines may play
// at a time, and one judges while none plays.
func Run(tb testing.TB, s *Scenario, seed uint64,
	length time.Duration) (*history.History, history.Verdict) {
	tb.Helper()
	r := newRun(tb, s, seed)
	over := false
	tb.Cleanup(func() {
		if !over { // the run itself failed, so nothing reports it
			keepEvents(tb, s, seed, length, r.log.all())
		}
	})
	r.playOnServers(length)

	plays.Lock()
	defer plays.Unlock()
	h, err := history.New(r.log.all())
	require.NoError(tb, err)
	over = true
	requireBusy(tb, h, length)
	return h, h.Judge(r.bounds())
}

// bounds returns what the judges tolerate.
func (r *run) bounds() history.Bounds {
	s := r.scenario
	return history.Bounds{
		Lease: s.lease(), Command: s.command(), Slack: slack, Brief: s.brief() + 2*s.Latency,
		WakeUp: wakeUp + roundTrips*2*s.Latency,
		HandsOver: slices.ContainsFunc(r.modes, func(mode rlock.HandOver) bool {
			return mode != rlock.HandOverNone
		}),
		Strict: true,
	}
}

func newRun(tb testing.TB, s *Scenario, seed uint64) *run {
	return &run{tb: tb, scenario: s, seed: seed, dice: rand.New(rand.NewPCG(seed, 0)), log: &log{},
		played: map[string]int{}}
}

// playOnServers plays the scenario on real servers and processes.
func (r *run) playOnServers(length time.Duration) {
	r.tb.Helper()
	plays.RLock()
	defer plays.RUnlock()
	r.world = newWorld(r.tb, r.scenario)
	r.stage = r.world
	begin, failovers := history.Now(), r.world.countFailovers(r.tb)
	r.playFor(length)
	if more := failovers() - r.played[Failover.Name] - r.played[MasterKilled.Name]; more > 0 {
		r.tb.Logf("the Sentinels failed over %d times by themselves: of this run only what holds "+
			"all the same is judged", more)
		r.log.add(history.Event{At: begin, What: history.Fault, Fault: Unplanned, Forgets: true})
	}
}

// playFor plays the scenario and records what happens.
func (r *run) playFor(length time.Duration) {
	tb, s := r.tb, r.scenario
	tb.Helper()
	processes := cmp.Or(s.Processes, 3)
	r.modes = s.HandOver.modes(r.seed, processes)
	tb.Logf("hand-over: %s (%s)", cmp.Or(s.HandOver, ToAll), describe(r.modes))
	if s.Far {
		r.loadScripts()
	}
	for i := range processes {
		r.slots = append(r.slots, r.newSlot(i))
	}
	for _, slot := range r.slots {
		r.startProcess(slot)
	}
	stopWatching := r.watch()
	r.waitForProcesses() // otherwise the first faults would hit nobody
	r.nemesis(time.Now().Add(length))
	r.stage.heal(tb)
	r.endProcesses()
	stopWatching()
	r.sweep()
}

// loadScripts has the server know the scripts of a lock that is renewed, as if other processes had
// used it before: each script that it does not know costs two more round trips.
func (r *run) loadScripts() {
	r.tb.Helper()
	locks, err := rlock.New(r.stage.clients()[0], rlock.Options{WatchdogLease: time.Second})
	require.NoError(r.tb, err)
	hold, err := locks.NewLock("first").Lock(r.tb.Context(), rlock.Watchdog)
	require.NoError(r.tb, err)
	first := hold.Deadline()
	require.Eventually(r.tb, func() bool { return hold.Deadline().After(first) },
		locktest.Timeout, 10*time.Millisecond)
	require.NoError(r.tb, hold.Unlock())
	require.NoError(r.tb, locks.Close(r.tb.Context()))
}

// requireBusy requires that locks were granted. The least ever seen is about one each second,
// except at the start, when nodes of a RedLock are too young.
func requireBusy(tb testing.TB, h *history.History, length time.Duration) {
	tb.Helper()
	granted := 0
	for _, a := range h.Acquisitions {
		if a.Granted() {
			granted++
		}
	}
	if granted < int(length.Seconds())-5 {
		tb.Errorf("%d acquisitions in %v: of so few nothing can be learnt", granted, length)
	}
}

// newSlot puts a proxy between the processes of a slot and each server.
func (r *run) newSlot(index int) *slot {
	s := &slot{index: index}
	s.links, s.routes = r.stage.links(r.tb)
	for _, link := range s.links {
		link.Delay(r.scenario.Latency)
	}
	return s
}

// startProcess starts the next process of a slot.
func (r *run) startProcess(s *slot) {
	s.process = r.stage.start(r, s, plan{
		Process:       s.name(),
		Seed:          r.dice.Uint64(),
		Workers:       cmp.Or(r.scenario.Workers, 3),
		Routes:        s.routes,
		Names:         r.scenario.locks(),
		Kept:          r.scenario.kept(s.name()),
		Storm:         r.scenario.storm(s.name()),
		SyncReplicas:  r.scenario.SyncReplicas,
		Pool:          r.scenario.Pool,
		Far:           r.scenario.Far,
		WatchdogLease: r.scenario.lease(),
		Command:       r.scenario.command(),
		Wait:          cmp.Or(r.scenario.Wait, longestWait),
		Burst:         r.scenario.Burst,
		Pace:          cmp.Or(r.scenario.Pace, usualPace),
		HandOver:      r.modes[s.index],
		Wander:        r.scenario.Wander,
		// A process that is told to end has released its holds before.
		ReleaseOnClose: s.index%2 == 1,
		Impatient:      r.scenario.Impatient,
		Moment:         r.scenario.Moment,
		Abandoned:      r.scenario.Abandoned,
		Durable:        r.scenario.Durable,
	})
}

// waitForProcesses waits until all processes use locks.
func (r *run) waitForProcesses() {
	r.tb.Helper()
	for _, s := range r.slots {
		s.process.waitUntilBegun(r.tb)
	}
}

// endProcesses tells all processes to stop, and waits until they have. They only finish their
// sections.
func (r *run) endProcesses() {
	r.waitForProcesses() // some were started while their servers were down
	r.log.add(history.Event{At: history.Now(), What: history.Stopping})
	for _, s := range r.slots {
		s.process.stop()
	}
	for _, s := range r.slots {
		s.process.end(longestSection + 2*r.scenario.lease() + 10*r.scenario.command() + slack)
	}
}

// check fails the test if the run itself went wrong.
func (r *run) check(err error) {
	r.tb.Helper()
	require.NoError(r.tb, err)
}
