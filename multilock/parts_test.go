//go:build !race

package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

func TestPartsOfEveryKindOnTwoServersAreAllHeldOrNone(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		var parts []rlock.Locker
		for _, c := range []*rlock.Client{p.another, p.client} {
			pages := c.NewReadWriteLock("pages") // of which one owner may hold both
			parts = append(parts, c.NewLock("z"), c.NewFairLock("fair"), c.NewFencedLock("fenced"),
				c.NewReadWriteLock("read").Read(), c.NewReadWriteLock("write").Write(),
				pages.Read(), pages.Write(), c.NewLock("a"))
		}
		all := multilock.New(parts...)
		hold := take(t, all, longLease)
		names := []string{"a", "fair", "fenced", "pages", "read", "write", "z"}
		require.Subset(t, left(t, p.first), names)
		require.Subset(t, left(t, p.second), names)
		unlock(t, takeWith(hold.Context(), t, all, longLease))
		require.True(t, hold.Valid())
		unlock(t, hold)
		p.requireFree(t)

		// When another owner holds one of them, all others stay free.
		other, otherToo := p.clients(t, rlock.Options{})
		for _, name := range names {
			for _, c := range []*rlock.Client{other, otherToo} {
				lock := c.NewLock(name)
				if name == "read" || name == "write" || name == "pages" {
					lock = c.NewReadWriteLock(name).Write()
				}
				theirs := take(t, lock, longLease)
				_, err := all.TryLock(t.Context(), rlock.NoWait, longLease)
				require.ErrorIs(t, err, rlock.ErrNotAcquired, name)
				var held *rlock.HeldError
				require.ErrorAs(t, err, &held)
				require.Equal(t, name, held.Lock)
				require.Equal(t, theirs.Owner(), held.Owner)
				require.ErrorContains(t, err, `holdfast: lock "`+all.Name()+`"`)
				require.ErrorContains(t, err, `: lock "`+name+`"`)
				require.Equal(t, []string{name}, left(t, p.first, p.second))
				unlock(t, theirs)
				p.requireFree(t)
			}
		}
	})
}

func TestOrderInWhichPartsAreNamedDoesNotMatter(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		a, b, c := p.client.NewLock("a"), p.client.NewFairLock("b"), p.another.NewLock("a")
		learn(t, multilock.New(a, b, c))
		for _, lock := range []*multilock.Lock{
			multilock.New(a, b, c), multilock.New(c, b, a), multilock.New(b, c, a),
		} {
			p.first.Do(t, "HSET", "a", "somebody:1", "1")
			p.asked(t)
			_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			first, second := p.asked(t)
			require.Equal(t, []int{1, 0}, []int{first, second}, "a is first")
			p.first.Do(t, "DEL", "a")
			p.first.Do(t, "HSET", "b", "somebody:1", "1")
			_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			_, second = p.asked(t)
			require.Zero(t, second, "the other server is last")
			p.first.Do(t, "DEL", "b")
			p.requireFree(t)
		}
		require.Equal(t, "a+b+a", multilock.New(c, b, a).Name())
	})
}

func TestMultiLocksAmongThePartsAreReplacedByTheirParts(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		inner := multilock.New(p.another.NewLock("a"), p.client.NewLock("b"))
		middle := multilock.New(inner, p.client.NewFencedLock("a"))
		outer := multilock.New(p.another.NewFairLock("c"), middle, p.client.NewLock("b"))
		require.Equal(t, "c+a+b+a+b", outer.Name())
		hold := take(t, outer, longLease)
		require.Equal(t, []string{"a", "b"}, left(t, p.first))
		require.Equal(t, []string{"a", "c"}, left(t, p.second))
		require.Equal(t, "1", levels(t, p.first, "b"), "it is one part")
		unlock(t, hold)
		p.requireFree(t)
	})
}

func TestOwnerThatHoldsSomePartsAddsALevelToThose(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		b := take(t, locks[1], longLease)
		hold := takeWith(b.Context(), t, of(locks), longLease)
		require.Equal(t, "1", levels(t, p.first, "a"))
		require.Equal(t, "2", levels(t, p.first, "b"))
		unlock(t, hold)
		require.Equal(t, []string{"b"}, left(t, p.first, p.second))

		// A failed acquisition does not release them either.
		p.first.Do(t, "HSET", "a", "somebody:1", "1")
		_, err := of(locks).TryLock(b.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.True(t, b.Valid())
		require.Equal(t, "1", levels(t, p.first, "b"))
		p.first.Do(t, "DEL", "a")
		unlock(t, b)
		p.requireFree(t)
	})
}

func TestDeadlineIsTheEarliestOfItsParts(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		outer := take(t, locks[0], longLease)
		middle := takeWith(outer.Context(), t, locks[1], rlock.Lease(2*time.Minute))
		third := takeWith(outer.Context(), t, locks[2], rlock.Lease(3*time.Minute))
		p.asked(t)
		hold := takeWith(outer.Context(), t, of(locks), rlock.Lease(10*time.Second))
		first, second := p.asked(t)
		require.Contains(t, []int{1, 3}, first+second, "no part needs a second command")
		require.Equal(t, middle.Deadline(), hold.Deadline())
		require.Greater(t, p.lasts(t), time.Duration(longLease)-time.Second, "it keeps its lease")
		require.NoError(t, hold.Extend(t.Context(), rlock.Lease(150*time.Second)))
		require.Greater(t, time.Until(hold.Deadline()), 2*time.Minute)
		require.Less(t, time.Until(hold.Deadline()), 150*time.Second)
		for _, h := range []*rlock.Hold{hold, third, middle, outer} {
			unlock(t, h)
		}
		p.requireFree(t)
	})
}

func TestTokenIsThatOfTheOnlyFencedPart(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		a, other := p.client.NewLock("a"), p.another.NewLock("a")
		f, g := p.client.NewFencedLock("f"), p.another.NewFencedLock("g")
		p.first.Do(t, "SET", "redisson_lock_token:{f}", "41")
		for want, lock := range map[int64]*multilock.Lock{
			42: multilock.New(a, f, other), 0: multilock.New(a, other), -1: multilock.New(f, g),
		} {
			hold := take(t, lock, longLease)
			require.Equal(t, max(want, 0), hold.Token())
			inner := takeWith(hold.Context(), t, lock, longLease)
			require.Equal(t, max(want, 0), inner.Token())
			unlock(t, inner)
			unlock(t, hold)
			p.first.Do(t, "SET", "redisson_lock_token:{f}", "41")
		}
	})
}
