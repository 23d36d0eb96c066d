//go:build interop

package redisson_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

func init() { processes["hold"] = holdInProcess }

// assignment is what a Go process must do with some locks.
type assignment struct {
	Locks []lockName
	Queue bool // wait for the locks instead of acquiring them
	Wait  time.Duration
}

// lockName is a target for another process.
type lockName struct {
	Kind  string
	Names []string
}

// holdInProcess prints that it is ready, then acquires the locks of each assignment that it reads,
// and prints that. It lives until the end of its input.
func holdInProcess(addresses []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses})
	if err != nil {
		return err
	}
	client, err := rlock.New(redis, rlock.Options{WatchdogLease: watchdogLease})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var owners []*goActor // a hold that nobody can reach is not renewed
	defer func() { runtime.KeepAlive(owners) }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var a assignment
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return err
		}
		for _, l := range a.Locks {
			owner := &goActor{ctx: rlock.WithOwner(context.Background()),
				clients: []*rlock.Client{client}}
			owners = append(owners, owner)
			if a.Queue {
				// killed before it succeeds
				go func() { _ = owner.tryLock(target{l.Kind, l.Names}, a.Wait, rlock.Watchdog) }()
			} else if err := owner.tryLock(target{l.Kind, l.Names}, 0, rlock.Watchdog); err != nil {
				return err
			}
		}
		fmt.Println("done")
	}
	return nil
}

// victim is a process of one side that will be killed. Each lock that it acquires or waits for has
// its own owner, and the lease of the watchdog.
type victim struct {
	acquire func(locks []target)
	queue   func(l target, wait time.Duration)
	kill    func()
}

// startVictim starts a process, and returns when it is ready.
func startVictim(t *testing.T, s *site, of side) victim {
	t.Helper()
	if of.name == javaSide.name {
		other := s.with(t, startPeer(t), watchdogLease)
		return victim{
			acquire: func(locks []target) {
				for _, l := range locks {
					acquire(t, newThread(other.java, other.clients), l, rlock.Watchdog)
				}
			},
			queue: func(l target, wait time.Duration) {
				owner := newThread(other.java, other.clients)
				inBackground(func() error { return owner.tryLock(l, wait, rlock.Watchdog) })
			},
			kill: func() { other.java.kill(t) },
		}
	}
	p := locktest.StartProcess(t, "hold", s.addresses()...)
	require.Equal(t, "ready", p.Line(t))
	assign := func(a assignment) {
		text, err := json.Marshal(a)
		require.NoError(t, err)
		p.Tell(t, string(text))
		require.Equal(t, "done", p.Line(t))
	}
	return victim{
		acquire: func(locks []target) {
			var a assignment
			for _, l := range locks {
				a.Locks = append(a.Locks, lockName{l.kind, l.names})
			}
			assign(a)
		},
		queue: func(l target, wait time.Duration) {
			assign(assignment{Locks: []lockName{{l.kind, l.names}}, Queue: true, Wait: wait})
		},
		kill: func() {
			require.NoError(t, p.Kill())
			_, err := p.Stdout.ReadByte() // waits for its end
			require.ErrorIs(t, err, io.EOF)
		},
	}
}

func locksOfAKilledProcessAreAcquiredWhenTheLeaseEnds(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		var duels []*duel
		var locks []target
		for _, c := range endsOfLeases(waits) {
			d := &duel{contest: c.make(), name: c.name, waiter: waits.newActor(t, s)}
			duels, locks = append(duels, d), append(locks, d.hold)
		}
		process := startVictim(t, s, holds)
		process.acquire(locks)
		wait(duels)
		for _, d := range duels {
			s.waitForWaiters(t, d.want, 1)
		}
		s.letSleep(t, duels[0].want)
		for _, d := range duels {
			select {
			case o := <-d.waiting:
				require.FailNow(t, "acquired while its holder lives", "%s: %v", d.name, o.err)
			default:
			}
		}
		process.kill()
		for _, d := range duels { // it is not renewed any more
			d.since = time.Now()
			if d.left = s.pttl(t, d.contested()); d.left > watchdogLease {
				// This is the waiter's lease: on a busy machine the last renewal came late, so that
				// the other has just ended.
				d.left = 0
			}
		}
		for _, d := range duels {
			got := acquired(t, d.waiting, d.name).Sub(d.since)
			if d.left > 0 { // otherwise it may have been acquired before the check
				require.Greater(t, got, d.left-early, d.name)
			}
			require.Less(t, got, watchdogLease+lag, d.name)
			unlock(t, d.waiter, d.want)
		}
	})
}

// A dead waiter cannot acquire the lock. This library skips one without a listener. Redisson waits
// until its score is over: the end of the lease when it came, its wait, and for a waiter of this
// library ten seconds within which it must ask again.
func killedFairWaiterIsSkipped(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, dies, waits side) {
		const lease = 4 * time.Second
		l := both(fair).hold
		holder, waiter := goSide.newActor(t, s), waits.newActor(t, s)
		process := startVictim(t, s, dies)
		acquire(t, holder, l, lease)
		budget, limit := lease, 2*lease+spare+lag
		if dies.name == javaSide.name {
			budget, limit = 5*time.Minute, locktest.Timeout
		}
		process.queue(l, budget)
		s.waitForWaiters(t, l, 1)
		dead := s.queue(t, l.name())
		waiting := inBackground(func() error { return waiter.tryLock(l, longLease, longLease) })
		s.waitForWaiters(t, l, 2)
		start := time.Now()
		process.kill()
		require.Equal(t, dead, s.queue(t, l.name())[:1])
		unlock(t, holder, l)
		select {
		case o := <-waiting:
			require.NoError(t, o.err)
			require.Less(t, o.at.Sub(start), limit)
		case <-time.After(limit):
			require.FailNow(t, "the dead waiter was not skipped")
		}
		unlock(t, waiter, l)
		s.requireFree(t, l)
	})
}
