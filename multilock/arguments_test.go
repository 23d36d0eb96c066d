//go:build !race

package multilock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

// requireInvalid requires that every use of a lock is refused, with a text that says why. Unlock
// releases nothing, also of an owner that holds one of the parts.
func requireInvalid(
	t *testing.T, owner *rlock.Hold, lock *multilock.Lock, texts ...string,
) {
	t.Helper()
	_, err := lock.Lock(t.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	_, err = multilock.New(lock).TryLock(t.Context(), time.Minute, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid, "as a part")
	require.ErrorIs(t, lock.Unlock(owner.Context()), rlock.ErrNotHeld)
	require.True(t, owner.Valid())
}

func TestPartsThatCanNeverBeHeldTogetherAreRefused(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		again, _ := p.clients(t, rlock.Options{})
		c, pages := p.client, p.client.NewReadWriteLock("a")
		owner := take(t, c.NewLock("a"), longLease)
		p.asked(t)
		for _, x := range []struct {
			locks []rlock.Locker
			texts []string
		}{
			{nil, []string{"there are no locks"}},
			{[]rlock.Locker{multilock.New()}, []string{"there are no locks"}},
			{[]rlock.Locker{c.NewLock("a"), nil}, []string{"nil", `holdfast: lock "a"`}},
			{[]rlock.Locker{c.NewLock("a"), (*rlock.Lock)(nil)}, []string{"nil"}},
			{[]rlock.Locker{c.NewLock("b"), c.NewLock("a"), multilock.New(again.NewLock("b"))},
				[]string{`"b" on first`, "two clients"}},
			{[]rlock.Locker{c.NewFairLock("a"), c.NewFairLock("b"), c.NewFairLock("{a}")},
				[]string{`"a" and "{a}" share a queue`}},
			{[]rlock.Locker{c.NewLock("b"), rlock.AtLeast(c.NewLock("a"), time.Second)},
				[]string{`lock "a" stays taken after its release`}},
			{[]rlock.Locker{c.NewLock("a"), c.NewFairLock("a")}, []string{`lock "a" appears as two kinds`}},
			{[]rlock.Locker{pages.Write(), c.NewFencedLock("a"), pages.Read()},
				[]string{`lock "a" appears as two kinds`}},
		} {
			requireInvalid(t, owner, multilock.New(x.locks...), x.texts...)
		}
		first, second := p.asked(t)
		require.Zero(t, first+second)
		unlock(t, owner)

		// Equal names on two servers are different locks.
		unlock(t, take(t, multilock.New(c.NewLock("a"), p.another.NewFairLock("a")), longLease))
	})
}

// A rueidis client does not tell which database it has selected, so its user has to.
func TestOneNameInTwoDatabasesOfAServerNeedsTheirNames(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		in := func(database int, server string) *rlock.Lock {
			redis := p.first.Client(t, func(o *rueidis.ClientOption) { o.SelectDB = database })
			return newClientOn(t, redis, rlock.Options{Server: server}).NewLock("a")
		}
		owner := take(t, in(0, ""), longLease)
		requireInvalid(t, owner, multilock.New(in(0, ""), in(1, "")),
			"two clients", "different databases", "rlock.Options.Server")
		unlock(t, owner)
		unlock(t, take(t, multilock.New(in(1, "main/1"), in(0, "main/0")), longLease))
	})
}
