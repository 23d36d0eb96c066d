//go:build redis && !race

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// clientCommands are the commands of this library's clients, other than those that set up a
// connection. Scripts call none of them.
var clientCommands = []string{"evalsha", "eval", "script|load", "subscribe", "unsubscribe", "wait"}

// sent returns how many commands clients have sent since the last reset.
func sent(t testing.TB, s *redistest.Server) (n int) {
	t.Helper()
	stats := s.CommandStats(t)
	for _, command := range clientCommands {
		n += stats[command]
	}
	return n
}

// A waiter that waits in vain asks, listens, asks again, and removes what it has put into Redis.
func TestCommandsOfAWaitThatIsOver(t *testing.T) {
	t.Parallel()
	onEach(t, contests(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		contender := take(t, k.contender(newClient(t, s, rlock.Options{}), k.name), time.Minute)
		monitor := s.Monitor(t)
		_, err := k.lock(c, k.name).TryLock(t.Context(), 2*time.Second, time.Minute)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		want := []string{"evalsha", "subscribe", "evalsha", "evalsha"}
		if k.shared { // readers are not registered
			want = []string{"evalsha", "subscribe", "evalsha"}
		}
		k.waitForListeners(t, s, k.name, 0) // a second later
		seen := slices.DeleteFunc(verbs(monitor.Commands(t)),
			func(verb string) bool { return !slices.Contains(want, verb) })
		require.Equal(t, want, seen, "besides the end of the subscription")
		unlock(t, contender)
	})
}

func TestContentionAmongProcessesCostsTwoCommandsPerAcquisition(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ clients, goroutines int }{{2, 1}, {2, 8}, {8, 1}, {8, 8}} {
		t.Run(
			fmt.Sprint(of.clients, " clients, ", of.goroutines, " goroutines each"),
			func(t *testing.T) {
				t.Parallel()
				onEach(t, givenAway(), func(t *testing.T, k kind) {
					const acquisitions = 1280
					s := redistest.Start(t)
					var clients []*rlock.Client
					for range of.clients {
						c := newClient(t, s, rlock.Options{})
						k.warm(t, c, k.name)
						clients = append(clients, c)
					}
					// After 16 hand-overs, and some time, the lock is free once, and all ask.
					most := min(2.5, 2+float64(of.clients+2)/16)
					if of.goroutines > 1 { // 16 of 17 are handed over within a process
						most = 1.2
					}
					rounds := acquisitions / of.clients / of.goroutines
					requireCost(t, s, most, acquisitions,
						crowd(t, k, of.goroutines, rounds, clients...))
				})
			},
		)
	}
}

// crowd has that many goroutines of each client lock and unlock, each that often.
func crowd(t *testing.T, k kind, goroutines, rounds int, clients ...*rlock.Client) func() {
	return func() {
		var work sync.WaitGroup
		for _, c := range clients {
			lock := k.lock(c, k.name)
			for range goroutines {
				work.Go(func() {
					for range rounds {
						hold, err := lock.Lock(context.Background(), rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						if err := hold.Unlock(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		work.Wait()
	}
}

// requireCost requires that run, with that many acquisitions, sends no more commands for each;
// except one in 100 ms, after which a lock leaves its process or is free once, however short its
// streak.
func requireCost(t *testing.T, s *redistest.Server, most float64, acquisitions int, run func()) {
	t.Helper()
	s.ResetStats(t)
	start := time.Now()
	run()
	most += float64(time.Since(start)/(100*time.Millisecond)) / float64(acquisitions)
	cost := float64(sent(t, s)) / float64(acquisitions)
	t.Logf("%.3f commands per acquisition", cost)
	require.Less(t, cost, most)
}

// Rounds of renewals begin every 9 to 10 s.
func TestWatchdogRenewsAHundredLocksWithOneCommand(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		const locks = 250
		for i := range locks {
			take(t, k.lock(b.client, fmt.Sprint("lock ", i)), rlock.Watchdog)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		renewals := b.called(k.renew)
		rounds := len(slices.Compact(slices.Clone(renewals)))
		require.Len(t, renewals, rounds*3)
		require.LessOrEqual(t, rounds, int(5*time.Minute/(9*time.Second)))
	})
}
