//go:build redis

package rlock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A waiter asked by itself, and found that it holds the lock. The grant message comes when its work
// is done and it releases the lock, in the one moment in which no one in its client seems to hold
// it.
func TestGrantThatComesDuringTheReleaseReleasesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.Start(t, s.Addr())
	gate := keepCommands(s.Client(t, through(p), redistest.OneConnection),
		loaded(t, s, "release.lua"))
	c, other := newClientOn(t, gate, rlock.Options{}), newClient(t, s, rlock.Options{})
	t.Cleanup(p.Pass)
	t.Cleanup(gate.open)
	first := take(t, other.NewLock("order"), rlock.Lease(4*time.Second)) // after which the waiter asks
	waiter := registers(t, s, 1, c.NewLock("order"), longLease)
	second := take(t, other.NewLock("another"), longLease)
	witness := registers(t, s, 1, c.NewLock("another"), longLease)
	waitForQuiet(t, s)
	p.HoldMessages()
	unlock(t, first)
	hold := acquired(t, waiter)
	released := make(chan error, 1)
	go func() { released <- hold.Unlock() }()
	receive(t, gate.kept, "the release was not sent")
	unlock(t, second)
	p.Pass()
	acquired(t, witness) // by a message that came after the other one
	require.Never(t, func() bool { return len(gate.kept) > 0 }, 50*time.Millisecond,
		5*time.Millisecond, "it is released twice")
	gate.open()
	require.NoError(t, receive(t, released, "the release hangs"))
	waitUntilFree(t, s, "order")
}

func TestGrantThatComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	other := newClient(t, s, rlock.Options{})
	// The waiter asks again after five seconds, when its own lease is long over.
	first := take(t, other.NewFencedLock("order"), longLease)
	waiter := registers(t, s, 1, c.NewFencedLock("order"), rlock.Lease(time.Second))
	stale := s.DoStrings(t, "ZRANGE", waitersKey("order"), "0", "-1", "WITHSCORES")
	p.HoldMessages()
	unlock(t, first)
	eventually(t, func() bool { return absent(s, "order") }, "the lease of the grant is over")
	second := take(t, other.NewFencedLock("order"), longLease)
	eventually(t, func() bool { return registrations(s, "order") == 1 }, "the waiter asks again")
	anew := s.DoStrings(t, "ZRANGE", waitersKey("order"), "0", "-1", "WITHSCORES")
	require.Equal(t, stale[0], anew[0], "the same owner")
	require.Greater(t, anew[1], stale[1], "with another ticket")
	waitForQuiet(t, s) // and has its reply
	require.Empty(t, waiter)

	sent := calls(s, "evalsha")
	p.Pass()
	s.Do(t, "PUBLISH", channelOf("order"), "0") // comes after the other one, and makes it ask
	eventually(t, func() bool { return calls(s, "evalsha") > sent }, "it has not looked")
	require.Empty(t, waiter, "two hold the lock")
	require.True(t, second.Valid())
	unlock(t, second)
	hold := acquired(t, waiter)
	require.Greater(t, hold.Token(), second.Token())
	_ = hold.Unlock() // on a busy machine its lease of a second may be over
	waitUntilFree(t, s, "order")
}

// handOver has a lock of one client wait for that of another, and requires that it is woken. It
// returns the commands that clients and scripts sent meanwhile, and their words that only this
// library knows.
func handOver(
	t *testing.T, s *redistest.Server, options rlock.Options,
) (commands [][]string, ownWords []string) {
	t.Helper()
	here, elsewhere := newClient(t, s, options), newClient(t, s, options)
	warm(t, here, "order")
	warm(t, elsewhere, "order")
	clients, scripts := s.Monitor(t), s.Monitor(t)
	hold := take(t, here.NewLock("order"), longLease)
	waiter := lockInBackground(t.Context(), elsewhere.NewLock("order"), longLease)
	waitForListeners(t, s, "order", 1)
	waitForQuiet(t, s)
	start := time.Now()
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
	require.Less(t, time.Since(start), promptly)
	commands = append(clients.Commands(t), scripts.CommandsOfScripts(t)...)
	for _, word := range slices.Concat(commands...) {
		if strings.Contains(word, "holdfast") && !strings.Contains(word, "\n") { // not a script
			ownWords = append(ownWords, word)
		}
	}
	return commands, ownWords
}

func TestWithoutHandOversOnlyWhatRedissonKnowsIsTouched(t *testing.T) {
	t.Parallel()
	_, words := handOver(t, redistest.Start(t), rlock.Options{})
	require.NotEmpty(t, words)
	commands, words := handOver(t, redistest.Start(t), rlock.Options{HandOver: rlock.HandOverNone})
	require.Empty(t, words)
	require.Contains(t, verbs(commands), "publish")
}

// A lock that is handed over would be held before the replicas have it.
func TestLockThatReplicasMustHaveIsNotHandedOver(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	commands, words := handOver(t, master, rlock.Options{SyncReplicas: 1})
	require.Empty(t, words)
	waits := slices.DeleteFunc(verbs(commands), func(verb string) bool { return verb != "wait" })
	require.GreaterOrEqual(t, len(waits), 2, "one for each acquisition")
}

func TestLockLeavesAProcessAfter16HandOversOr100MillisecondsIfOthersWaitElsewhere(t *testing.T) {
	t.Parallel()
	const waiters = 40
	for name, c := range map[string]struct {
		section     time.Duration
		least, most int64 // sections in this process before the one elsewhere
	}{"short sections": {0, 16, 16}, "long sections": {30 * time.Millisecond, 1, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			here := newClient(t, s, rlock.Options{}).NewLock("order")
			elsewhere := newClient(t, s, rlock.Options{}).NewLock("order")
			first := take(t, here, longLease)
			var sections atomic.Int64
			var line sync.WaitGroup
			for range waiters {
				line.Go(func() {
					hold, err := here.Lock(context.Background(), rlock.Watchdog)
					if assert.NoError(t, err) {
						sections.Add(1)
						time.Sleep(c.section)
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			eventually(t, func() bool {
				return rlock.Waiting(here) == waiters && registrations(s, "order") == 1
			}, "not all wait")
			other := registers(t, s, 2, elsewhere, longLease)
			waitForQuiet(t, s)
			start := time.Now()
			unlock(t, first)
			hold := acquired(t, other)
			took, before := time.Since(start), sections.Load()
			unlock(t, hold)
			line.Wait()
			require.LessOrEqual(t, before, c.most)
			// otherwise the machine is too busy
			if took < 100*time.Millisecond || c.section > 0 {
				require.GreaterOrEqual(t, before, c.least)
			}
			waitUntilFree(t, s, "order")
		})
	}
}
