//go:build redis

package redlock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// TestTwoClientsThatRaceNeverBothHold has HOLDFAST_REDLOCK_ROUNDS rounds: see make random.
func TestTwoClientsThatRaceNeverBothHold(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	var locks [2]*redlock.Lock
	for i := range locks {
		clients := newClients(t, servers, rlock.Options{})
		warm(t, clients)
		locks[i] = redlock.NewOn(name, atOnce, clients...)
	}
	n := locktest.Times(t, "HOLDFAST_REDLOCK_ROUNDS", 1000)
	var inside, both, neither, failed atomic.Int64
	var won [2]int
	start := time.Now()
	for round := range n {
		var holds [2]*rlock.Hold
		var ready, over sync.WaitGroup
		ready.Add(2)
		for k := range locks {
			i := (k + round) % 2 // the one that is started last mostly comes first
			over.Go(func() {
				ready.Done()
				ready.Wait()
				hold, err := locks[i].TryLock(t.Context(), rlock.NoWait, longLease)
				if err != nil && !errors.Is(err, rlock.ErrNotAcquired) &&
					!errors.Is(err, redlock.ErrNoQuorum) {
					failed.Add(1)
				}
				if err == nil && inside.Add(1) > 1 {
					both.Add(1)
				}
				holds[i] = hold
			})
		}
		over.Wait()
		if holds[0] == nil && holds[1] == nil {
			neither.Add(1)
		}
		for i, hold := range holds {
			if hold != nil {
				won[i]++
				inside.Add(-1)
				unlock(t, hold)
			}
		}
	}
	t.Logf("%d rounds in %v: %d and %d won, nobody %d times", n, time.Since(start), won[0], won[1],
		neither.Load())
	require.Zero(t, both.Load(), "both held")
	require.Zero(t, failed.Load(), "another error than that the lock was held")
	require.Positive(t, won[0])
	require.Positive(t, won[1])
	waitUntilFree(t, servers...)
}

// contenders are processes' worth of clients that all want the same lock, and take it that often
// each. run returns the longest wait, and checks that no two of them held it at once.
func contenders(
	t *testing.T, servers []*redistest.Server, contenders, times int,
) (longest time.Duration) {
	t.Helper()
	var inside, waited atomic.Int64
	var all sync.WaitGroup
	failures := make([]error, contenders)
	for i := range contenders {
		l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
		all.Go(func() {
			for range times {
				start := time.Now()
				hold, err := l.Lock(t.Context(), longLease)
				took := int64(time.Since(start))
				for most := waited.Load(); took > most && !waited.CompareAndSwap(most, took); {
					most = waited.Load()
				}
				if err != nil {
					failures[i] = err
					return
				}
				others := inside.Add(1) - 1
				<-time.After(200 * time.Microsecond) // so that another could come in
				inside.Add(-1)
				failures[i] = hold.Unlock(t.Context())
				if others > 0 {
					failures[i] = errors.New("two hold it")
				}
				if failures[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
	return time.Duration(waited.Load())
}

func TestContendersAllGetTheLockRepeatedly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contenders, times, commands int }{{2, 30, 60}, {4, 15, 120}} {
		t.Run(fmt.Sprint(c.contenders, " contenders"), func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			resetStats(t, servers)
			start := time.Now()
			longest := contenders(t, servers, c.contenders, c.times)
			n := c.contenders * c.times
			commands := scriptCalls(t, servers)
			t.Logf("%d acquisitions in %v, the longest wait %v, %d commands each", n,
				time.Since(start), longest, commands/n)
			require.Less(t, longest, longWait)
			require.Less(t, commands, n*c.commands, "an uncontended one takes 10")
			waitUntilFree(t, servers...)
		})
	}
}
