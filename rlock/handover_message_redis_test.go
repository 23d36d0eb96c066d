//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

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
