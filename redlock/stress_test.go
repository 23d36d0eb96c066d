//go:build redis

package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

const (
	stressLease   = 400 * time.Millisecond
	stressTimeout = 150 * time.Millisecond
	// stressSlack is how late a call may return on a busy machine, with all that this test does.
	stressSlack = 3 * time.Second
	// A run proves something with more acquisitions than enough and more faults than enoughFaults.
	enough       = 5
	enoughFaults = 20
)

// TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes lets owners of two processes' worth of clients
// lock, nest, extend, unlock and give up at random, while connections to any of five nodes break,
// hang and lose replies at random. In the second run nodes also restart empty, or are emptied.
// HOLDFAST_STRESS_SEED draws other faults, HOLDFAST_STRESS_TIME makes it longer: see make random.
func TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes(t *testing.T) {
	t.Parallel()
	length := locktest.Length(t, "HOLDFAST_STRESS_TIME", 3*time.Second)
	seed := locktest.Seed(t, "HOLDFAST_STRESS_SEED")
	for _, run := range []struct {
		name    string
		options redlock.Options
		// forget is what is done to a node now and then.
		forget func(t *testing.T, s *redistest.Server, d *rand.Rand)
	}{
		{"nodes remember", redlock.Options{FsyncAlways: true, NodeTimeout: stressTimeout / 3}, nil},
		{
			"nodes forget",
			redlock.Options{MaxLease: stressLease, Epoch: true, NodeTimeout: stressTimeout / 3},
			func(t *testing.T, s *redistest.Server, d *rand.Rand) {
				if d.IntN(3) == 0 {
					s.Restart(t)
				} else {
					s.Do(t, "FLUSHALL")
				}
			},
		},
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			st := &stress{
				t:         t,
				servers:   startNodes(t, 5),
				holds:     make(map[*rlock.Hold]bool),
				forgetful: run.forget != nil,
			}
			if st.forgetful {
				counted(t, st.servers, stressLease)
			}
			st.play(run.options, seed, length, run.forget)
		})
	}
}

type stress struct {
	t         *testing.T
	servers   []*redistest.Server
	forgetful bool

	mu    sync.Mutex
	holds map[*rlock.Hold]bool // guarded by mu; acquired and not released

	acquired, nested, lost, unconfirmed, faults atomic.Int64
}

func (st *stress) play(
	o redlock.Options, seed uint64, length time.Duration,
	forget func(*testing.T, *redistest.Server, *rand.Rand),
) {
	t := st.t
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	disturbed, calm := context.WithCancel(ctx)
	defer calm()
	var running sync.WaitGroup
	for i := range 2 {
		clients, proxies := proxied(t, st.servers,
			rlock.Options{WatchdogLease: stressLease, CommandTimeout: stressTimeout})
		lock := redlock.NewOn(name, o, clients...)
		for j, p := range proxies {
			running.Go(func() { st.disturb(disturbed, p, dice(seed, i, j)) })
		}
		for j := range 3 {
			running.Go(func() { st.work(ctx, lock, dice(seed, i, 10+j)) })
		}
	}
	watched := time.AfterFunc(length, func() {
		// A machine that is busy with other tests gets few faults done in time, and then faults leave
		// no time for anything else.
		until := func(n *atomic.Int64, enough int64) {
			late := time.Now().Add(4 * longWait)
			for n.Load() <= enough && ctx.Err() == nil && time.Now().Before(late) {
				pause(ctx.Done(), time.Millisecond)
			}
		}
		until(&st.faults, enoughFaults)
		calm()
		until(&st.acquired, enough)
		cancel()
	})
	defer watched.Stop()
	running.Go(func() {
		for ctx.Err() == nil {
			st.mu.Lock()
			st.check()
			st.mu.Unlock()
			pause(ctx.Done(), time.Millisecond)
		}
	})
	for d := dice(seed, 2, 0); forget != nil && disturbed.Err() == nil; {
		pause(disturbed.Done(), 200*time.Millisecond+upTo(d, 600*time.Millisecond))
		forget(t, st.servers[d.IntN(len(st.servers))], d)
	}
	running.Wait()
	t.Logf("%d acquired, %d nested, %d lost, %d unlocked in doubt, %d faults", st.acquired.Load(),
		st.nested.Load(), st.lost.Load(), st.unconfirmed.Load(), st.faults.Load())

	// The network works again, and all that meant to release have done so.
	// What was in flight may still come later, so once is enough.
	late := time.Now().Add(stressLease + stressSlack)
	for count(st.servers) > 0 {
		require.True(t, time.Now().Before(late), "one lease later a node is not free")
		pause(nil, time.Millisecond)
	}
	require.Greater(t, st.acquired.Load(), int64(enough))
	require.Greater(t, st.faults.Load(), int64(enoughFaults))
}

// dice returns random numbers, the same for the same seed and player.
func dice(seed uint64, client, player int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(client)<<32|uint64(player)))
}

// upTo returns a random time.
func upTo(d *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(1 + d.Int64N(int64(limit)))
}

// check requires that all valid holds belong to one owner. A hold that was valid is asked again
// after all others: if it still is, it was valid all the time. It is called with mu held.
func (st *stress) check() {
	var valid []*rlock.Hold
	for hold := range st.holds {
		if hold.Valid() {
			valid = append(valid, hold)
		}
	}
	owners := make(map[string]time.Time)
	for _, hold := range valid {
		if hold.Valid() {
			owners[hold.Owner()] = hold.Deadline()
		}
	}
	if len(owners) > 1 {
		st.t.Errorf("held at the same time: %v", owners)
	}
}

// disturb plays faults on the way to one node until ctx ends, and leaves none behind.
func (st *stress) disturb(ctx context.Context, p *faultproxy.Proxy, d *rand.Rand) {
	scripts := []string{"quorum_acquire.lua", "reenter.lua", "release_only.lua", "release.lua",
		"renew.lua"}
	for ctx.Err() == nil {
		pause(ctx.Done(), upTo(d, 800*time.Millisecond))
		st.faults.Add(1)
		switch d.IntN(8) {
		case 0:
			p.Reset()
		case 1, 2:
			p.CutReply(script(scripts[d.IntN(len(scripts))]), 1+d.IntN(3))
		case 3:
			p.Delay(upTo(d, 10*time.Millisecond))
			pause(ctx.Done(), upTo(d, stressLease))
		case 4:
			p.CutReply(script(scripts[d.IntN(len(scripts))]), 1)
		case 5:
			p.HoldReplies()
			pause(ctx.Done(), upTo(d, 2*stressTimeout))
		case 6:
			p.BlackHole()
			pause(ctx.Done(), upTo(d, stressLease+stressTimeout))
		case 7:
			p.BlackHoleNew()
			p.Reset()
			pause(ctx.Done(), upTo(d, stressTimeout))
		}
		if d.IntN(8) == 0 { // what was held back may also be lost
			p.Reset()
		}
		p.Pass()
		p.Delay(0)
	}
}

// work takes the lock until ctx ends.
func (st *stress) work(ctx context.Context, lock *redlock.Lock, d *rand.Rand) {
	owner := rlock.WithOwner(context.Background())
	for ctx.Err() == nil {
		from := context.Background() // a new owner each time
		if d.IntN(2) == 0 {
			from = owner
		}
		st.section(from, lock, d)
	}
}

// section acquires, nests, extends and releases once. Now and then a hold with a lease is not
// released.
func (st *stress) section(ctx context.Context, lock *redlock.Lock, d *rand.Rand) {
	lease := rlock.Watchdog
	if d.IntN(3) == 0 {
		lease = 20*time.Millisecond + upTo(d, stressLease-20*time.Millisecond)
	}
	hold := st.acquire(ctx, lock, lease, d)
	if hold == nil {
		// attempts that fail at once must not starve the others
		pause(nil, upTo(d, 5*time.Millisecond))
		return
	}
	st.acquired.Add(1)
	st.mu.Lock()
	st.holds[hold] = true
	st.check()
	st.mu.Unlock()
	if d.IntN(12) == 0 {
		pause(hold.Done(), upTo(d, 2*stressLease))
	} else {
		pause(hold.Done(), upTo(d, 20*time.Millisecond))
	}
	if lease != rlock.Watchdog && d.IntN(8) == 0 {
		return
	}
	for range d.IntN(3) {
		if d.IntN(3) == 0 {
			st.explain(hold.Extend(ctx, stressLease/2+upTo(d, stressLease/2)), rlock.ErrLost,
				rlock.ErrOutcomeUnknown)
			continue
		}
		inner := st.acquire(context.WithoutCancel(hold.Context()), lock, lease, d)
		if inner == nil {
			continue
		}
		st.nested.Add(1)
		if d.IntN(2) == 0 { // out of order
			defer st.release(inner, d)
			continue
		}
		pause(hold.Done(), upTo(d, 5*time.Millisecond))
		st.release(inner, d)
	}
	st.release(hold, d)
}

// acquire makes an attempt, which must end in time and with an expected error.
func (st *stress) acquire(
	ctx context.Context, lock *redlock.Lock, lease time.Duration, d *rand.Rand,
) (hold *rlock.Hold) {
	limit := upTo(d, 300*time.Millisecond)
	start := time.Now()
	var err error
	switch d.IntN(3) {
	case 0:
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		hold, err = lock.Lock(limited, lease)
	case 1:
		hold, err = lock.TryLock(ctx, limit, lease)
	case 2:
		limit = stressTimeout
		hold, err = lock.TryLock(ctx, rlock.NoWait, lease)
	}
	if took := time.Since(start); took > limit+stressSlack {
		st.t.Errorf("an attempt for %v took %v: %v", limit, took, err)
	}
	st.explain(err, rlock.ErrNotAcquired, redlock.ErrNoQuorum, rlock.ErrOutcomeUnknown,
		rlock.ErrLost, context.DeadlineExceeded)
	return hold
}

// release releases a hold, in time and with an expected error.
func (st *stress) release(hold *rlock.Hold, d *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if d.IntN(2) == 0 {
		cancel()
	}
	start := time.Now()
	err := hold.Unlock(ctx)
	if took := time.Since(start); took > stressTimeout+stressSlack {
		st.t.Errorf("Unlock took %v: %v", took, err)
	}
	if hold.Valid() {
		st.t.Errorf("a hold is valid after Unlock: %v", err)
	}
	st.mu.Lock()
	delete(st.holds, hold)
	st.mu.Unlock()
	switch {
	case errors.Is(err, rlock.ErrLost):
		st.lost.Add(1)
	case errors.Is(err, rlock.ErrOutcomeUnknown):
		st.unconfirmed.Add(1)
	}
	st.explain(err, rlock.ErrLost, rlock.ErrOutcomeUnknown)
}

// explain fails the test for an error that is not expected.
func (st *stress) explain(err error, expected ...error) {
	for _, e := range expected {
		if errors.Is(err, e) {
			return
		}
	}
	if err != nil {
		st.t.Errorf("unexpected: %v", err)
	}
}
