//go:build redis

package rlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

const (
	stressLease   = 400 * time.Millisecond
	stressTimeout = 150 * time.Millisecond
	// stressSlack is how late a call may return on a busy machine, with all that this test does.
	stressSlack = 3 * time.Second
)

// TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes lets many owners of several clients lock,
// nest, unlock, give up and leave at random, while connections break, hang and lose replies at
// random. HOLDFAST_STRESS_SEED draws other faults, HOLDFAST_STRESS_TIME makes it longer: see make
// random.
func TestNoTwoHoldsAreValidAtOnceWhateverTheNetworkDoes(t *testing.T) {
	seed := locktest.Seed(t, "HOLDFAST_STRESS_SEED")
	length := locktest.Length(t, "HOLDFAST_STRESS_TIME", 3*time.Second)

	s := redistest.Start(t)
	st := &stress{t: t, server: s, detector: newDetector()}
	for _, k := range kinds {
		for _, file := range []string{k.acquire, k.reenter, k.release, k.lowers(), k.renew} {
			st.scripts = append(st.scripts, script(t, file))
		}
	}
	const workers = 5
	clients := make([]*rlock.Client, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const enough = 20
	watched := time.AfterFunc(length, func() {
		// A machine that is busy with other tests gets little done in time.
		few := func() bool { return min(st.acquired.Load(), st.faults.Load()) <= enough }
		for late := time.Now().Add(4 * longWait); few() && time.Now().Before(late); {
			pause(ctx.Done(), time.Millisecond)
		}
		cancel()
	})
	defer watched.Stop()
	var running sync.WaitGroup
	for i := range clients {
		proxy := faultproxy.Start(t, s.Addr())
		c := newClient(t, s,
			rlock.Options{WatchdogLease: stressLease, CommandTimeout: stressTimeout},
			through(proxy))
		clients[i] = c
		running.Go(func() { st.disturb(ctx, proxy, dice(seed, i, 0)) })
		for j := range workers {
			running.Go(func() { st.work(ctx, c, dice(seed, i, j+1)) })
		}
	}
	running.Go(func() { st.detector.watch(ctx, t) })
	running.Wait()

	// The network works again, and all that meant to release have done so.
	var keys []string
	free := func() (ok bool) {
		keys, ok = left(s)
		return ok && len(keys) == 0
	}
	for late := time.Now().Add(stressLease + stressSlack); !free() && time.Now().Before(late); {
		pause(nil, time.Millisecond)
	}
	require.True(t, free(), "one lease later a lock is not free, or somebody is still queued: %q",
		keys)
	t.Logf("%d acquired, %d nested, %d lost, %d unlocked in doubt, %d faults", st.acquired.Load(),
		st.nested.Load(), st.lost.Load(), st.unconfirmed.Load(), st.faults.Load())
	require.Greater(t, st.acquired.Load(), int64(enough))
	require.Greater(t, st.faults.Load(), int64(enough))
	waitForNothingLeft(t, s)
	for _, c := range clients {
		eventually(t, func() bool { return rlock.Sessions(c) == 0 }, "a seat is left")
	}
}

type stress struct {
	t        *testing.T
	server   *redistest.Server
	scripts  []string
	detector *detector

	acquired, nested, lost, unconfirmed, faults atomic.Int64
}

// disturb plays faults until ctx ends, and leaves the network without faults.
func (st *stress) disturb(ctx context.Context, p *faultproxy.Proxy, d *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx.Done(), upTo(d, 60*time.Millisecond))
		st.faults.Add(1)
		switch d.IntN(16) {
		case 0:
			p.Reset()
		case 1, 2, 3, 4, 5:
			p.CutReply(st.scripts[d.IntN(len(st.scripts))], 1+d.IntN(3))
		case 6, 7:
			p.Delay(upTo(d, 5*time.Millisecond))
		case 8, 9, 10, 11:
			p.Delay(0)
		case 12:
			p.HoldReplies()
			pause(ctx.Done(), upTo(d, 2*stressTimeout))
		case 13:
			p.BlackHole()
			pause(ctx.Done(), upTo(d, stressLease+stressTimeout))
		case 14:
			p.Refuse()
			p.Reset()
			pause(ctx.Done(), upTo(d, stressTimeout))
		case 15:
			if _, err := st.server.Call("SCRIPT", "FLUSH"); err != nil {
				st.t.Error(err)
			}
		}
		if d.IntN(8) == 0 { // what was held back may also be lost
			p.Reset()
		}
		p.Pass()
		if err := p.Accept(); err != nil {
			st.t.Error(err)
		}
	}
	p.Delay(0)
}

// work takes locks until ctx ends.
func (st *stress) work(ctx context.Context, c *rlock.Client, d *rand.Rand) {
	owner := rlock.WithOwner(context.Background())
	for ctx.Err() == nil {
		from := context.Background() // a new owner each time
		if d.IntN(2) == 0 {
			from = owner
		}
		st.section(from, c, kinds[d.IntN(len(kinds))], d)
	}
}

// section acquires, nests and releases once. Now and then a hold with a lease is not released, and
// now and then a writer also reads, and may go on reading when it stops writing.
func (st *stress) section(ctx context.Context, c *rlock.Client, k kind, d *rand.Rand) {
	lock := k.lock(c, "lock "+k.name)
	if k.mode != "" {
		name := "lock to read and write"
		if d.IntN(2) == 0 { // few others use these: an owner mostly races with itself
			name += " " + strconv.Itoa(d.IntN(40))
		}
		lock = k.lock(c, name)
	}
	lease := rlock.Watchdog
	if d.IntN(3) == 0 {
		lease = 20*time.Millisecond + upTo(d, stressLease-20*time.Millisecond)
	}
	hold := st.acquire(ctx, lock, lease, d)
	if hold == nil {
		return
	}
	st.acquired.Add(1)
	st.detector.enter(st.t, k, hold)
	pause(hold.Done(), upTo(d, 10*time.Millisecond))
	if lease != rlock.Watchdog && d.IntN(8) == 0 {
		return
	}
	given := false
	give := func() {
		if !given {
			given = true
			st.release(hold, d)
			st.detector.leave(hold)
		}
	}
	defer give()
	for range d.IntN(3) {
		if given {
			break
		}
		nested := lock
		if reads := d.IntN(2) == 0; reads && k.mode == "write" {
			nested = newReadLock(c, lock.Name())
		}
		inner := st.acquire(context.WithoutCancel(hold.Context()), nested, lease, d)
		if inner == nil {
			continue
		}
		st.nested.Add(1)
		if nested != lock {
			st.detector.enter(st.t, kindNamed("read"), inner)
			defer st.detector.leave(inner)
			if d.IntN(2) == 0 {
				give()
			}
		}
		if d.IntN(2) == 0 { // out of order
			defer st.release(inner, d)
			continue
		}
		pause(hold.Done(), upTo(d, 5*time.Millisecond))
		st.release(inner, d)
	}
}

// acquire makes an attempt, which must end in time and with an expected error.
func (st *stress) acquire(
	ctx context.Context, lock *rlock.Lock, lease time.Duration, d *rand.Rand,
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
	// An owner may read what it has not released yet.
	st.explain(err, rlock.ErrNotAcquired, rlock.ErrOutcomeUnknown, rlock.ErrLost, rlock.ErrUpgrade,
		context.DeadlineExceeded)
	return hold
}

// release releases a hold, in time and with an expected error.
func (st *stress) release(hold *rlock.Hold, d *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if d.IntN(2) == 0 {
		cancel()
	}
	gone := errors.Is(hold.Err(), watchdog.ErrGone) && time.Now().Before(hold.Deadline())
	start := time.Now()
	err := hold.Unlock(ctx)
	if took := time.Since(start); took > stressTimeout+stressSlack {
		st.t.Errorf("Unlock took %v: %v", took, err)
	}
	if gone ||
		errors.Is(err, watchdog.ErrGone) && start.Before(hold.Deadline()) &&
			time.Now().Before(hold.Deadline()) {
		st.t.Errorf("%s lost the lock before its deadline: %v", hold.Owner(), err)
	}
	if hold.Valid() {
		st.t.Errorf("a hold is valid after Unlock: %v", err)
	}
	switch {
	case errors.Is(err, rlock.ErrLost):
		st.lost.Add(1)
	case errors.Is(err, rlock.ErrOutcomeUnknown):
		st.unconfirmed.Add(1)
	}
	st.explain(err, rlock.ErrLost, rlock.ErrOutcomeUnknown)
}

// explain fails the test for an error that is neither expected nor that of an unreachable server.
func (st *stress) explain(err error, expected ...error) {
	for _, e := range expected {
		if errors.Is(err, e) {
			return
		}
	}
	server := new(rlock.ServerError)
	if err != nil && (!errors.As(err, &server) || server.Code != "") {
		st.t.Errorf("unexpected: %v", err)
	}
}
