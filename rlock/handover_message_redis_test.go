//go:build redis

package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// For a message that is lost on a connection that stays, there is the request every 5 s.
func TestWaiterWhoseGrantIsLostAsksWithin5Seconds(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		p.DropMessages()
		unlock(t, first)
		start := time.Now()
		unlock(t, acquired(t, waiter))
		require.Less(t, time.Since(start), 8*time.Second)
	})
}

func TestGrantThatComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		const (
			othersLease = 3 * time.Second // after which the waiter asks again
			lease       = time.Second
		)
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		other := newClient(t, s, rlock.Options{})
		first := take(t, k.lock(other, k.name), othersLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), lease)
		stale := s.DoStrings(t, "ZRANGE", waitersKey(k.name), "0", "-1", "WITHSCORES")
		p.HoldMessages()
		unlock(t, first)
		require.Equal(t, c.ID(), holderOf(t, s, k.name))
		eventually(t, func() bool { return absent(s, k.name) }, "the lease of the grant is over")
		second := take(t, k.lock(other, k.name), longLease)
		eventually(t, func() bool { return registrations(s, k.name) == 1 }, "the waiter asks again")
		anew := s.DoStrings(t, "ZRANGE", waitersKey(k.name), "0", "-1", "WITHSCORES")
		require.Equal(t, stale[0], anew[0], "the same owner")
		require.Greater(t, anew[1], stale[1], "with another ticket")
		waitForQuiet(t, s) // and has its reply
		require.Empty(t, waiter)

		sent := calls(s, "evalsha")
		p.Pass()
		s.Do(t, "PUBLISH", channelOf(k.name), "0") // comes after the other one, and makes it ask
		eventually(t, func() bool { return calls(s, "evalsha") > sent }, "it has not looked")
		require.Empty(t, waiter, "two hold the lock")
		require.True(t, second.Valid())
		require.Equal(t, k.hash(second.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, second)
		hold := acquired(t, waiter)
		if k.fenced {
			require.Greater(t, hold.Token(), second.Token())
			require.Equal(t, lastNumber(t, s, k.name), hold.Token())
		}
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

// In watchdog mode a granted lock has a short lease. The rest of it must last until the first
// renewal.
func TestGrantOfWhichHalfIsOverIsConfirmedBeforeItIsTrusted(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		for _, late := range []bool{false, true} {
			grant := 10 * time.Second // half of it outlasts any delay
			if late {
				grant = 6 * time.Second
			}
			options := rlock.Options{WatchdogLease: 10 * grant}
			s := redistest.Start(t)
			c, p := proxied(t, s, options)
			other := newClient(t, s, options)
			warm(t, c, "connected")
			first := take(t, k.lock(other, k.name), longLease)
			waiter := registers(t, s, 1, k.lock(c, k.name), rlock.Watchdog)
			waitForQuiet(t, s)
			monitor := s.Monitor(t)
			p.HoldMessages()
			unlock(t, first)
			given := s.DoMap(t, "HGETALL", k.name)
			require.LessOrEqual(t, s.DoInt(t, "PTTL", k.name), grant.Milliseconds())
			if late {
				eventually(t, func() bool {
					left, err := s.Call("PTTL", k.name)
					return err == nil && left.(int64) < 2700
				}, "more than half of it is over")
			}
			p.Pass()
			hold := acquired(t, waiter)
			require.Equal(t, k.hash(hold.Owner(), 1), given)
			asked := slices.ContainsFunc(monitor.Commands(t), func(command []string) bool {
				return command[0] == "evalsha" && command[1] == script(t, k.acquire)
			})
			require.Equal(t, late, asked)
			if late {
				require.Greater(t, s.DoInt(t, "PTTL", k.name), int64(45000),
					"now it has the whole lease")
				require.Greater(t, time.Until(hold.Deadline()), 45*time.Second)
			}
			unlock(t, hold)
		}
	})
}

// An explicit lease should be about as long as requested.
func TestGrantIsWorthNineTenthsOfAnExplicitLease(t *testing.T) {
	t.Parallel()
	const lease = 15 * time.Second // a fifth of it outlasts any delay
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), lease)
		p.HoldMessages()
		unlock(t, first)
		eventually(t, func() bool {
			left, err := s.Call("PTTL", k.name)
			return err == nil && left.(int64) < (lease*4/5).Milliseconds()
		}, "a fifth of it is over")
		p.Pass()
		hold := acquired(t, waiter)
		require.Greater(t, time.Until(hold.Deadline()), lease*4/5)
		unlock(t, hold)
	})
}

// Neither for a successor, whose lease begins when the release is executed, nor for a grant, which
// may have been on its way for long.
func TestDeadlineOfALockThatWasHandedOverIsNotLaterThanItsExpiry(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		for name, releaser := range map[string]*rlock.Client{
			"successor": c, "grant": newClient(t, s, rlock.Options{}),
		} {
			for _, lease := range []time.Duration{lease, rlock.Watchdog} {
				first := take(t, k.lock(releaser, k.name), longLease)
				waiter := lockInBackground(t.Context(), k.lock(c, k.name), lease)
				k.waitForListeners(t, s, k.name, 1)
				waitForQuiet(t, s)
				p.DelayReplies(300 * time.Millisecond) // a reply or a message
				unlock(t, first)
				hold := acquired(t, waiter)
				p.DelayReplies(0)
				left := time.Duration(s.DoInt(t, "PTTL", k.name)) * time.Millisecond
				expiry := time.Now().Add(left + time.Millisecond)
				require.False(t, hold.Deadline().After(expiry), "%s: by %v", name,
					hold.Deadline().Sub(expiry))
				require.Equal(t, c.ID(), holderOf(t, s, k.name))
				unlock(t, hold)
				waitUntilFree(t, s, k.name)
			}
		}
	})
}
