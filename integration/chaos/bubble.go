package chaos

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/internal/faultproxy"
	"holdfast/internal/inprocess"
	"holdfast/internal/locktest"
)

// In virtual time nothing is late, except by the round trips and retries that were asked for.
const (
	virtualPace    = 3 * time.Second
	virtualLatency = time.Millisecond
	virtualSlack   = 100 * time.Millisecond
)

// Play is [Run] in virtual time. Servers, networks, processes and clocks are all in one
// testing/synctest bubble, so that an hour takes seconds. A server is an [inprocess.Server], and a
// process is some goroutines with clients of their own. A bubble has no signals, so
// [ProcessStopped] is played as [Partition]. Play also fails if a goroutine is left at the end, or
// if a call or hold that a tracer was told of has not ended exactly once.
//
// A seed draws the same faults, at the same instants, and gives each worker the same dice. But Go's
// scheduler decides the order of what happens at one virtual instant, such as when several waiters
// are woken, and which of several ready cases a select takes. Two runs of a seed drift apart at the
// first such choice that matters. Measured runs stayed equal for 1 to 60 s of virtual time, with a
// few hundred acquisitions at most. An early failure usually comes again with its seed. A later
// failure may need other seeds. What the history says of a run is exact.
func Play(t *testing.T, s *Scenario, seed uint64, length time.Duration) (*history.History,
	history.Verdict) {
	t.Helper()
	own := s.Virtual()
	var r *run
	synctest.Test(t, func(t *testing.T) {
		r = newRun(t, &own, seed)
		b := newBubble(t, &own)
		r.stage = b
		r.playFor(length)
		b.end(r)
	})
	h, err := history.New(r.log.all())
	require.NoError(t, err)
	bounds := r.bounds()
	if !own.Far { // round trips add up there
		bounds.Slack, bounds.Brief = virtualSlack, virtualSlack+2*own.Latency
		bounds.WakeUp = virtualSlack + roundTrips*2*own.Latency
	}
	return h, h.Judge(bounds)
}

// Virtual returns the scenario as it is played in virtual time.
func (s *Scenario) Virtual() Scenario {
	own := *s
	own.Latency = max(own.Latency, virtualLatency)
	own.Pace = cmp.Or(own.Pace, virtualPace)
	own.Faults = slices.Clone(own.Faults)
	for i, f := range own.Faults {
		if f.Name == ProcessStopped.Name {
			own.Faults[i] = Partition
		}
	}
	return own
}

// bubble is the stage of a scenario in virtual time.
type bubble struct {
	servers   []*virtualServer
	processes []*virtualProcess
	pairs     *locktest.Pairs
}

func newBubble(t *testing.T, s *Scenario) *bubble {
	t.Helper()
	b := &bubble{pairs: locktest.NewPairs()}
	for range s.Topology.Independent() {
		server, err := inprocess.New()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		client, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		t.Cleanup(client.Close)
		b.servers = append(b.servers, &virtualServer{server, newInTurn(client), s.Durable})
	}
	require.NotEmpty(t, b.servers, "there is no %v in a bubble", s.Topology)
	return b
}

func (b *bubble) clients() (all []rueidis.Client) {
	for _, s := range b.servers {
		all = append(all, s.client)
	}
	return all
}

func (b *bubble) masters(testing.TB) []server { return b.all() }
func (b *bubble) all() []server               { return asServers(b.servers) }

func (b *bubble) heal(testing.TB) {
	for _, s := range b.servers {
		s.RejectNames("", "")
		s.SetDown(false)
		s.Server.Resume()
	}
}

func (b *bubble) links(tb testing.TB) (links []*faultproxy.Proxy, _ map[string]string) {
	for _, s := range b.servers {
		dial := s.ClientOption().DialCtxFn
		links = append(links, faultproxy.StartInMemory(tb, func() (net.Conn, error) {
			return dial(context.Background(), "", nil, nil)
		}))
	}
	return links, nil
}

// end requires that no key is left without a TTL, except counters of fenced locks, and that each
// call and hold that a tracer heard of has ended once. The bubble itself sees goroutines that still
// run.
func (b *bubble) end(r *run) {
	for _, v := range b.processes {
		<-v.ended
	}
	b.pairs.Check(r.tb)
	time.Sleep(r.scenario.lease()) // precedence of writers runs out
	for _, s := range b.servers {
		s.CatchUp()
		for _, key := range s.Redis().Keys() {
			if !strings.HasPrefix(key, "redisson_lock_token") && s.Redis().TTL(key) == 0 {
				r.tb.Errorf("%s stays for ever", key)
			}
		}
	}
}

// virtualServer is a server in a bubble, with what faults do to it.
type virtualServer struct {
	*inprocess.Server
	client  rueidis.Client
	durable bool
}

func (s *virtualServer) Addr() string { return s.ClientOption().InitAddress[0] }

func (s *virtualServer) Pause(testing.TB)  { s.Server.Pause() }
func (s *virtualServer) Resume(testing.TB) { s.Server.Resume() }

func (s *virtualServer) Kill(testing.TB) {
	s.SetDown(true)
	if !s.durable {
		s.Forget()
	}
}

func (s *virtualServer) Restart(testing.TB) { s.SetDown(false) }

// Call executes a command, or what comes closest to one that the server does not know.
func (s *virtualServer) Call(args ...string) (any, error) {
	switch strings.Join(args[:min(len(args), 2)], " ") {
	case "CLIENT KILL":
		s.SetDown(true)
		s.SetDown(false)
		return nil, nil
	case "PUBSUB SHARDCHANNELS":
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), command)
	defer cancel()
	reply, err := s.client.Do(ctx, s.client.B().Arbitrary(args...).Build()).ToAny()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return reply, err
}

// Do is Call for a command that must succeed.
func (s *virtualServer) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	reply, err := s.Call(args...)
	require.NoError(tb, err, "%v", args)
	return reply
}

// virtualProcess is a client process in a bubble.
type virtualProcess struct {
	name   string
	log    *log
	client *client
	links  []*faultproxy.Proxy // its own: a killed process never gets anything through again
	cancel context.CancelFunc
	began  chan struct{}
	ended  chan struct{}
	err    error // valid when ended is closed

	mu   sync.Mutex
	dead bool // guarded by mu; it tells nothing any more
}

func (b *bubble) start(r *run, s *slot, p plan) process {
	if before, restarted := s.process.(*virtualProcess); restarted {
		if !before.isDead() {
			s.before = append(s.before, s.links...)
		}
		s.links, _ = b.links(r.tb)
		r.restore(s)
	}
	v := &virtualProcess{name: p.Process, log: r.log, links: s.links, began: make(chan struct{}),
		ended: make(chan struct{})}
	v.client = newClient(p, &recorder{process: p.Process, tell: v.tell, pairs: b.pairs})
	v.client.tracer, v.client.wrap = b.pairs, newInTurn
	for i, server := range b.servers {
		option := server.ClientOption()
		p.setTimes(&option)
		s.links[i].UseMemory(&option)
		option.Dialer.KeepAlive = p.WatchdogLease // a link that lost something breaks in the end
		option.ReadBufferEachConn, option.WriteBufferEachConn = 1<<14, 1<<14
		if p.Far { // many requests are on their way
			option.RingScaleEachConn = 0
		}
		v.client.options = append(v.client.options, option)
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	go func() {
		defer close(v.ended)
		v.err = v.client.run(ctx)
	}()
	b.processes = append(b.processes, v)
	return v
}

func (v *virtualProcess) tell(e history.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead {
		return
	}
	v.log.add(e)
	if e.What == history.Started {
		close(v.began)
	}
}

func (v *virtualProcess) isDead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

func (v *virtualProcess) waitUntilBegun(testing.TB) {
	select {
	case <-v.began:
	case <-v.ended:
	}
}

func (v *virtualProcess) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	require.Fail(tb, "no signals in a bubble", "%v", s)
}

// kill cuts the process off for good, and has it end without a word.
func (v *virtualProcess) kill(testing.TB) {
	v.mu.Lock()
	v.dead = true
	v.mu.Unlock()
	for _, link := range v.links {
		link.Refuse()
		link.Reset()
	}
	v.cancel()
	v.log.add(history.Event{At: history.Now(), What: history.Killed, Process: v.name})
}

// close closes the clients while they are used, and ends the process when leases have run out.
func (v *virtualProcess) close() {
	select {
	case <-v.began:
	default:
		v.cancel() // there are no clients yet
		return
	}
	v.client.record.closed.Store(true)
	go func() {
		defer v.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), v.client.plan.WatchdogLease)
		defer cancel()
		for _, locks := range v.client.rlocks {
			_ = locks.Close(ctx) // the process does so again
		}
		time.Sleep(v.client.plan.WatchdogLease)
	}()
}

func (v *virtualProcess) stop() { v.cancel() }

func (v *virtualProcess) end(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	var how string
	select {
	case <-v.ended:
		if v.err == nil {
			return
		}
		how = fmt.Sprintf("went wrong: %v", v.err)
	case <-late.C:
		how = fmt.Sprintf("has not ended %v after it was told to", limit)
	}
	v.log.add(history.Event{At: history.Now(), What: history.Left, Process: v.name,
		Error: "process " + v.name + " " + how})
}
