//go:build interop

package redisson_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

const (
	timeVariable = "HOLDFAST_INTEROP_TIME" // how long the soak takes; defaults to soakTime
	seedVariable = "HOLDFAST_INTEROP_SEED" // seeds the random choices
	soakTime     = 5 * time.Second

	goClients     = 3
	javaProcesses = 2
	soakWorkers   = 4 // of each client or process
	mostRounds    = 10

	// soakWatchdog is longer than a busy machine delays a process. Redisson shortens an explicit
	// lease to it when a nested level is left, and does not renew it.
	soakWatchdog = 10 * time.Second
)

// Clients of this library and processes of Redisson acquire locks of all kinds at random. Each name
// has a counter that is read and written by two commands, so two simultaneous holders sooner or
// later lose an update.
func TestNoUpdateIsLostAmongProcessesOfBothSides(t *testing.T) {
	lasts := locktest.Length(t, timeVariable, soakTime)
	seed := int64(locktest.Seed(t, seedVariable))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat: %s=%d %s=%v make interop TESTFLAGS='-run %s'", seedVariable,
				seed, timeVariable, lasts, t.Name())
		}
	})
	var peers []*peer
	for range javaProcesses {
		peers = append(peers, startPeer(t))
	}
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		soak(t, newSingle(t, peers[0]), peers, seed, lasts)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		soak(t, newCluster(t, peers[0]), peers, seed, lasts)
	})
}

// soakLock is a lock and what it protects, also in an order to the peer.
type soakLock struct {
	Kind     string   `json:"kind"`
	Names    []string `json:"names"`
	Counters []string `json:"counters"`
	Fence    string   `json:"fence"`   // of a fenced lock: the key of its last token
	Clients  []string `json:"clients"` // of a Java peer
}

// soakReport is what a client or a process has done.
type soakReport struct {
	Sections   map[string]int `json:"sections"`   // by kind
	Increments map[string]int `json:"increments"` // by counter
	Errors     map[string]int `json:"errors"`
}

// soakLocks returns the locks of a soak. MultiLocks share names with others, and name them in any
// order.
func soakLocks() []soakLock {
	a, b, c, d := newName(), newName(), newName(), newName()
	readWrite, queue, numbered, spun := newName(), newName(), newName(), newName()
	locks := []soakLock{
		{Kind: reentrant, Names: []string{a}},
		{Kind: reentrant, Names: []string{b}},
		// MultiLocks keep this one while they wait: a poller rarely gets it
		{Kind: spin, Names: []string{c}},
		{Kind: spin, Names: []string{spun}},
		{Kind: multi, Names: []string{a, b}},
		{Kind: multi, Names: []string{c, b, d}},
		{Kind: fair, Names: []string{queue}},
		{Kind: fair, Names: []string{queue}},
		{Kind: fenced, Names: []string{numbered}},
		{Kind: read, Names: []string{readWrite}},
		{Kind: read, Names: []string{readWrite}},
		{Kind: write, Names: []string{readWrite}},
	}
	for i := range locks {
		for _, name := range locks[i].Names {
			locks[i].Counters = append(locks[i].Counters, "{"+name+"}:counter")
		}
		locks[i].Fence = "{" + numbered + "}:fence"
	}
	return slices.DeleteFunc(locks, func(l soakLock) bool { return !beside.has(l.Kind) })
}

func soak(t *testing.T, s *site, peers []*peer, seed int64, lasts time.Duration) {
	t.Helper()
	// This library has no spin lock: Redisson's is a plain one whose waiters poll.
	theirs := soakLocks()
	ours := append([]soakLock(nil), theirs...)
	for i := range ours {
		if ours[i].Kind == spin {
			ours[i].Kind = reentrant
		}
	}
	zero(t, s, theirs)
	var java []*site // ready before any process begins
	for _, p := range peers {
		java = append(java, s.with(t, p, soakWatchdog))
	}

	// On a busy machine some kind may have no section in this time: then there are more rounds.
	increments, sections := map[string]int{}, map[string]int{}
	for round := range int64(mostRounds) {
		soakRound(t, s, java, ours, theirs, seed+10_000*round, lasts, increments, sections)
		if !slices.ContainsFunc(theirs, func(l soakLock) bool { return missing(l, sections) != "" }) {
			break
		}
	}
	for _, l := range theirs {
		require.Empty(t, missing(l, sections))
		for _, counter := range l.Counters {
			require.Equal(t, strconv.Itoa(increments[counter]),
				s.node(t, counter).DoString(t, "GET", counter), "updates of %s", counter)
		}
		s.requireUnheld(t, l)
	}
}

// cancelled is what each wait for a lock throws, in one client of Redisson, once a wait has ended
// before its subscription was confirmed: before 3.19 Redisson may go on using the cancelled
// subscription. A minute of soak beside 3.17.7 met it on a busy machine. No scene of known_test.go
// does, so that it is only expected here, where it costs sections and hides nothing else.
const cancelled = "java.util.concurrent.CancellationException"

// missing says which side had no section under a lock; "" if both had.
func missing(l soakLock, sections map[string]int) string {
	switch {
	case sections["Java "+l.Kind] == 0:
		return "no section of Redisson under a " + l.Kind + " lock"
	case l.Kind != spin && sections["Go "+l.Kind] == 0:
		return "no section of this library under a " + l.Kind + " lock"
	default:
		return ""
	}
}

// soakRound runs all clients and processes once, and adds up what they did.
func soakRound(t *testing.T, s *site, java []*site, ours, theirs []soakLock, seed int64,
	lasts time.Duration, increments, sections map[string]int) {
	t.Helper()
	reports := make(chan soakOutcome, goClients+javaProcesses)
	dice := rand.New(rand.NewPCG(uint64(seed), uint64(len(s.nodes))))
	for i := range goClients {
		options := rlock.Options{WatchdogLease: soakWatchdog,
			Logger: slog.New(slog.DiscardHandler)}
		// Half of the time two of them can hand over to each other; otherwise the others have none
		// to grant to.
		if i > 1 || dice.IntN(2) == 0 {
			options.HandOver = rlock.HandOver(dice.IntN(int(rlock.HandOverNone) + 1))
		}
		t.Logf("Go %d: hand-over %d", i, options.HandOver)
		client, err := rlock.New(s.connect[0](t), options)
		require.NoError(t, err)
		g := &soaking{client: client, plain: s.connect[0](t), report: soakReport{
			Sections: map[string]int{}, Increments: map[string]int{}, Errors: map[string]int{}}}
		go func() {
			err := g.run(ours, uint64(seed)+uint64(100*i), time.Now().Add(lasts))
			reports <- soakOutcome{goSide.name, fmt.Sprint(goSide.name, " ", i), g.report, err}
		}()
	}
	for i, beside := range java {
		locks := append([]soakLock(nil), theirs...)
		for j := range locks {
			locks[j].Clients = beside.clients
		}
		go func() {
			r, err := beside.java.do(order{
				"thread": "soak " + s.topology, "op": "soak", "seed": seed + int64(1000*(i+1)),
				"workers":  soakWorkers,
				"duration": lasts.Milliseconds(), "locks": locks,
			})
			if err == nil && !r.OK {
				err = fmt.Errorf("%s: %s", r.Class, r.Message)
			}
			o := soakOutcome{of: javaSide.name, who: fmt.Sprint(javaSide.name, " ", i), err: err}
			if err == nil {
				o.err = json.Unmarshal(r.Value, &o.report)
			}
			reports <- o
		}()
	}

	for range goClients + javaProcesses {
		var o soakOutcome
		select {
		case o = <-reports:
		case <-time.After(lasts + 3*locktest.Timeout):
			require.FailNow(t, "a client or process has not ended")
		}
		require.NoError(t, o.err, o.who)
		t.Logf("%s: %v", o.who, o.report.Sections)
		if o.of == javaSide.name && beside.before(release{3, 19, 0}) {
			maps.DeleteFunc(o.report.Errors, func(what string, _ int) bool {
				return strings.HasSuffix(what, ": "+cancelled)
			})
		}
		assert.Empty(t, o.report.Errors, o.who)
		for kind, n := range o.report.Sections {
			sections[o.of+" "+kind] += n
		}
		for counter, n := range o.report.Increments {
			increments[counter] += n
		}
	}
}

// zero creates the counters.
func zero(t testing.TB, s *site, locks []soakLock) {
	t.Helper()
	for _, l := range locks {
		for _, key := range append(l.Counters[:len(l.Counters):len(l.Counters)], l.Fence) {
			s.node(t, key).Do(t, "SET", key, "0")
		}
	}
}

// requireUnheld requires that a lock is neither held nor queued for.
func (s *site) requireUnheld(t testing.TB, l soakLock) {
	t.Helper()
	for _, name := range l.Names {
		require.Empty(t, s.hgetall(t, name))
		require.Empty(t, s.queue(t, name))
		require.Zero(t,
			s.node(t, name).DoInt(t, "ZCARD", wire.Prefix("redisson_lock_timeout", name)))
	}
}

// soakOutcome is the result of a client or a process.
type soakOutcome struct {
	of, who string
	report  soakReport
	err     error
}

// soaking is a client of this library in the soak. Soak.java does the same.
type soaking struct {
	client *rlock.Client
	plain  rueidis.Client // for counters

	mu     sync.Mutex
	report soakReport // guarded by mu
}

// run soaks until the end, and closes the client.
func (s *soaking) run(locks []soakLock, seed uint64, end time.Time) error {
	var workers sync.WaitGroup
	for i := range soakWorkers {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		workers.Go(func() {
			for time.Now().Before(end) {
				chosen := locks[random.IntN(len(locks))]
				if err := s.attempt(chosen, random); err != nil {
					s.note(func(r *soakReport) { r.Errors[chosen.Kind+": "+err.Error()]++ })
				}
			}
		})
	}
	workers.Wait()
	return s.client.Close(context.Background())
}

func (s *soaking) note(change func(*soakReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.report)
}

// attempt is one attempt to lock, by a new owner, and the work under the lock.
func (s *soaking) attempt(chosen soakLock, random *rand.Rand) (err error) {
	l := target{chosen.Kind, chosen.Names}
	wait, lease, nested := rlock.NoWait, rlock.Watchdog, random.IntN(4) == 0
	if random.IntN(4) > 0 {
		wait = time.Duration(50+random.IntN(450)) * time.Millisecond
	}
	if random.IntN(2) == 0 {
		lease = longLease
	}
	owner := &goActor{ctx: rlock.WithOwner(context.Background()),
		clients: []*rlock.Client{s.client}}
	switch err := owner.tryLock(l, wait, lease); {
	case errors.Is(err, errRefused):
		return nil
	case noReply(err):
		// On a busy machine there may be no reply within so short a wait. If the lock was acquired
		// nevertheless it is released in the background.
		s.note(func(r *soakReport) { r.Sections["noReply"]++ })
		return nil
	case err != nil:
		return err
	}
	hold := owner.last
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	if chosen.Kind == fenced {
		if err := s.fence(hold.Context(), chosen.Fence, hold.Token()); err != nil {
			return err
		}
	}
	if nested {
		if err := owner.tryLock(l, rlock.NoWait, lease); err != nil {
			return fmt.Errorf("its holder could not relock it: %w", err)
		}
		if err := errors.Join(s.section(hold.Context(), chosen), owner.unlock(l)); err != nil {
			return err
		}
	}
	return s.section(hold.Context(), chosen)
}

// section must not be executed by two holders at a time.
func (s *soaking) section(ctx context.Context, chosen soakLock) error {
	for _, counter := range chosen.Counters {
		before, err := s.get(ctx, counter)
		if err != nil {
			return err
		}
		if chosen.Kind == read {
			if again, err := s.get(ctx, counter); err != nil || again != before {
				return cmp.Or(err, errors.New("a counter changed while it was read"))
			}
			continue
		}
		if err := s.set(ctx, counter, before+1); err != nil {
			return err
		}
		s.note(func(r *soakReport) { r.Increments[counter]++ })
	}
	s.note(func(r *soakReport) { r.Sections[chosen.Kind]++ })
	return nil
}

// fence leaves the token for the next holder, whose own must be larger.
func (s *soaking) fence(ctx context.Context, key string, token int64) error {
	before, err := s.get(ctx, key)
	if err != nil {
		return err
	}
	if before >= token {
		return fmt.Errorf("fencing token %d after %d", token, before)
	}
	return s.set(ctx, key, token)
}

func (s *soaking) get(ctx context.Context, key string) (int64, error) {
	return s.plain.Do(ctx, s.plain.B().Get().Key(key).Build()).AsInt64()
}

func (s *soaking) set(ctx context.Context, key string, value int64) error {
	return s.plain.Do(ctx, s.plain.B().Set().Key(key).Value(fmt.Sprint(value)).Build()).Error()
}
