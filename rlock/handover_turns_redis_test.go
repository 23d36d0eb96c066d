//go:build redis

package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Not every waiter can be seen: some listen by pattern, or on a replica.
func TestLockThatIsHandedOverIsAnnouncedNowAndThen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clients, goroutines int
		interval            time.Duration // at least
	}{
		"within processes and between them": {2, 8, 100 * time.Millisecond},
		// sometimes all but the holder are about to ask
		"between them":     {4, 1, 0},
		"within a process": {1, 8, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireAnnouncedNowAndThen(t, c.clients, c.goroutines, c.interval)
		})
	}
}

func requireAnnouncedNowAndThen(t *testing.T, clients, goroutines int, interval time.Duration) {
	t.Helper()
	s := redistest.Start(t)
	redis := s.Client(t)
	heard := make(chan time.Time, 1000) // when announcements came
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan error, 1)
	go func() {
		listening <- redis.Receive(ctx,
			redis.B().Psubscribe().Pattern("redisson_lock__channel:*").Build(),
			func(rueidis.PubSubMessage) { heard <- time.Now() })
	}()
	eventually(t, func() bool {
		n, err := s.Call("PUBSUB", "NUMPAT")
		return err == nil && n == int64(1)
	}, "nobody listens")
	var history turns
	var stop []func()
	for i := range clients {
		stop = append(
			stop,
			contend(t, goroutines, newClient(t, s, rlock.Options{}).NewLock("order"),
				history.take(i)),
		)
	}
	waitForListeners(t, s, "order", clients)
	for len(heard) > 0 {
		<-heard
	}
	start := receive(t, heard, "the first announcement") // the count begins with the run
	const times = 3
	var took time.Duration
	for range times {
		took = receive(t, heard, "no announcement").Sub(start)
	}
	for _, enough := range stop {
		enough()
	}
	cancel()
	_ = receive(t, listening, "it listens still")
	require.Greater(t, took, (times-1)*interval)
	require.Less(t, took, times*5*time.Second)
	if interval > 0 {
		require.Greater(t, len(history.of), times*16, "the lock is handed over in between")
	}
}

// The queue of a process is empty whenever its only waiter is granted the lock.
func TestTwoThatHandTheLockToEachOtherLetOthersHaveIt(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !k.handsOver {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
			other := k.lock(newClient(t, s, rlock.Options{}), k.name)
			var (
				over   atomic.Bool
				both   sync.WaitGroup
				passed = make(chan struct{}, 1000)
			)
			for range 2 {
				both.Go(func() {
					for !over.Load() {
						hold, err := lock.Lock(context.Background(), rlock.Watchdog)
						if err != nil {
							t.Errorf("lock: %v", err)
							return
						}
						pause(nil, 20*time.Millisecond) // the other one comes back meanwhile
						if err := hold.Unlock(context.Background()); err != nil {
							t.Errorf("unlock: %v", err)
							return
						}
						select {
						case passed <- struct{}{}:
						default:
						}
						pause(nil, time.Millisecond)
					}
				})
			}
			defer both.Wait()
			defer over.Store(true)
			for range 10 {
				receive(t, passed, "they do not get on")
			}
			for range 3 {
				start := time.Now()
				hold, err := other.TryLock(t.Context(), longWait, longLease)
				t.Logf("its turn came after %v", time.Since(start))
				require.NoError(t, err, "others wait for ever")
				unlock(t, hold)
			}
		})
	}
}

func TestContendingProcessesHoldTheLockEquallyOften(t *testing.T) {
	t.Parallel()
	const acquisitions = 3000
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		var history turns
		var stop []func()
		done, once := make(chan struct{}), new(sync.Once)
		for i := range 3 {
			take := history.take(i)
			stop = append(
				stop,
				contend(
					t,
					6,
					k.lock(newClient(t, s, rlock.Options{}), k.name),
					func(hold *rlock.Hold) {
						if take(hold); len(history.of) == acquisitions {
							once.Do(func() { close(done) })
						}
					},
				),
			)
		}
		eventually(t, func() bool { return registrations(s, k.name) == len(stop) }, "not all wait")
		start := time.Now()
		unlock(t, first)
		select {
		case <-done:
		case <-time.After(6 * longWait):
			require.Fail(t, "they make no progress")
		}
		took := time.Since(start)
		for _, enough := range stop {
			enough()
		}
		shares, moves := make([]int, len(stop)), 0
		for i, who := range history.of[:acquisitions] {
			if shares[who]++; i > 0 && who != history.of[i-1] {
				moves++
			}
		}
		for _, share := range shares {
			require.Greater(t, share, acquisitions/len(shares)/2, "%v", shares)
		}
		require.Less(t, moves, acquisitions/8+int(took/(100*time.Millisecond)),
			"each time that the lock comes to a process it stays for a run of 16")
		waitUntilFree(t, s, k.name)
	})
}

func TestLockLeavesAProcessAfter16HandOversOr100MillisecondsIfOthersWaitElsewhere(t *testing.T) {
	t.Parallel()
	const waiters = 40
	for name, c := range map[string]struct {
		section     time.Duration
		least, most int // sections in this process before the one elsewhere
	}{"short sections": {0, 16, 16}, "long sections": {30 * time.Millisecond, 1, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, givenAway(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				here := k.lock(newClient(t, s, rlock.Options{}), k.name)
				elsewhere := k.lock(newClient(t, s, rlock.Options{}), k.name)
				first := take(t, here, longLease)
				var history turns
				var line sync.WaitGroup
				for range waiters {
					line.Go(func() {
						hold, err := here.Lock(context.Background(), rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						history.take(0)(hold)
						pause(nil, c.section)
						if err := hold.Unlock(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				eventually(t, func() bool {
					return rlock.Waiting(here) == waiters && registrations(s, k.name) == 1
				}, "not all wait")
				other := registers(t, s, 2, elsewhere, longLease)
				waitForQuiet(t, s)
				start := time.Now()
				unlock(t, first)
				hold := acquired(t, other)
				took := time.Since(start)
				before := len(history.of)
				unlock(t, hold)
				line.Wait()
				require.LessOrEqual(t, before, c.most)
				// otherwise the machine is too busy
				if took < 100*time.Millisecond || c.section > 0 {
					require.GreaterOrEqual(t, before, c.least)
				}
				require.Len(t, history.of, waiters)
				waitUntilFree(t, s, k.name)
			})
		})
	}
}

// The releaser of a plain lock cannot number an acquisition of a fenced one, so the lock is
// announced. All make progress, though not evenly.
func TestPlainAndFencedWaitersOfOneNameAllProgress(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var turns [4]atomic.Int64
	var last int64
	var stop []func()
	for i := range 2 {
		c := newClient(t, s, rlock.Options{})
		stop = append(stop,
			contend(t, 4, c.NewLock("order"), func(*rlock.Hold) { turns[2*i].Add(1) }),
			contend(t, 4, c.NewFencedLock("order"), func(hold *rlock.Hold) {
				turns[2*i+1].Add(1)
				if hold.Token() <= last {
					t.Errorf("token %d after %d", hold.Token(), last)
				}
				last = hold.Token()
			}))
	}
	few := func() bool {
		return min(turns[0].Load(), turns[1].Load(), turns[2].Load(), turns[3].Load()) <= 4
	}
	for n := 100; n <= 2000 || few() && n <= 20_000; n += 100 { // a busy machine takes long for them
		eventually(t, func() bool { return calls(s, "evalsha") >= n }, "they do not get on")
	}
	require.False(t, few(), "%v", &turns)
	for _, enough := range stop {
		enough()
	}
	require.Equal(t, last, lastNumber(t, s, "order"))
	waitUntilFree(t, s, "order")
}
