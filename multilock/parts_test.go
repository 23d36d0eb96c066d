package multilock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// every returns one lock of each kind, on both servers.
func every(p *pair) []rlock.Locker {
	var locks []rlock.Locker
	for _, c := range []*rlock.Client{p.another, p.client} {
		pages := c.NewReadWriteLock("pages")
		locks = append(
			locks,
			c.NewLock("z"),
			c.NewFairLock("fair"),
			c.NewReadWriteLock("read").Read(),
			c.NewReadWriteLock("write").
				Write(),
			c.NewFencedLock("fenced"),
			pages.Read(),
			pages.Write(),
			c.NewLock("a"),
		)
	}
	return locks
}

// everyName has the keys that are held while all locks of every are.
var everyName = []string{"a", "fair", "fenced", "pages", "read", "write", "z"}

func TestPartsOfEveryKindOnTwoServersAreAllHeldOrNone(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	other, otherToo := p.clients(t, rlock.Options{})
	all := multilock.New(every(p)...)
	hold := take(t, all, longLease)
	for _, s := range []*redistest.Server{p.first, p.second} {
		for _, name := range everyName {
			require.True(t, exists(t, s, name), name)
		}
	}
	require.True(t, hold.Valid())
	unlock(t, hold)
	requireFree(t, p.first, p.second)
	require.Equal(t, rlock.ErrReleased, hold.Err())

	// When another owner holds one of them, all others stay free.
	for _, name := range everyName {
		servers := map[*redistest.Server]*rlock.Client{p.first: other, p.second: otherToo}
		for server, c := range servers {
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
			require.ErrorContains(t, err, `lock "`+name+`"`)
			require.ErrorContains(t, err, `multilock "`+all.Name()+`"`)
			require.Equal(t, 1, strings.Count(err.Error(), "holdfast:"), err)
			require.Equal(t, []string{name}, left(t, server))
			unlock(t, theirs)
			requireFree(t, p.first, p.second)
		}
	}
}

func TestOrderInWhichPartsAreNamedDoesNotMatter(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	locks := []rlock.Locker{
		p.client.NewLock("a"), p.client.NewFairLock("b"), p.another.NewLock("a"),
	}
	unlock(t, take(t, multilock.New(locks...), longLease)) // loads the scripts
	first, second := p.first.Monitor(t), p.second.Monitor(t)
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for _, order := range orders {
		lock := multilock.New(locks[order[0]], locks[order[1]], locks[order[2]])
		p.first.Do(t, "HSET", "b", "somebody:1", "1")
		_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Empty(t, second.Commands(t), "%v", order)
		p.first.Do(t, "DEL", "b")
		first.Commands(t)

		p.second.Do(t, "HSET", "a", "somebody:1", "1")
		_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		p.second.Do(t, "DEL", "a")
		var keys []string
		for _, command := range first.Commands(t) {
			keys = append(keys, command[3])
		}
		// The releases follow, in any order.
		require.Equal(t, []string{"a", "b"}, keys[:2], "%v", order)
		second.Commands(t)
		requireFree(t, p.first)
	}
	for _, order := range orders {
		lock := multilock.New(locks[order[0]], locks[order[1]], locks[order[2]])
		require.Equal(t,
			locks[order[0]].Name()+"+"+locks[order[1]].Name()+"+"+locks[order[2]].Name(),
			lock.Name())
		unlock(t, take(t, lock, longLease))
	}
	requireFree(t, p.first, p.second)
}

func TestMultiLocksAmongThePartsAreReplacedByTheirParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	inner := multilock.New(p.another.NewLock("a"), p.client.NewLock("b"))
	middle := multilock.New(inner, p.client.NewFencedLock("a"))
	outer := multilock.New(p.another.NewFairLock("c"), middle, p.client.NewLock("b"))
	require.Equal(t, "c+a+b+a+b", outer.Name())
	hold := take(t, outer, longLease)
	require.ElementsMatch(t, []string{"a", "b"}, left(t, p.first))
	require.ElementsMatch(t, []string{"a", "c"}, left(t, p.second))
	require.Equal(t, []string{"1"}, levels(t, p.first, "b"))
	unlock(t, hold)
	requireFree(t, p.first, p.second)
}

func TestOneOwnerHoldsTheReadAndTheWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	for _, lock := range []*multilock.Lock{
		multilock.New(c.NewReadWriteLock("a").Read(), c.NewReadWriteLock("a").Write()),
		multilock.New(c.NewReadWriteLock("a").Write(), c.NewReadWriteLock("a").Read()),
	} {
		hold := take(t, lock, longLease)
		require.Len(t, s.DoMap(t, "HGETALL", "a"), 3)
		_, err := other.NewReadWriteLock("a").Read().TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		inner := takeWith(hold.Context(), t, lock, longLease)
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, s)
	}
}

func TestOwnerThatHoldsSomePartsAddsALevelToThose(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	b := take(t, p.client.NewLock("b"), longLease)
	d := takeWith(b.Context(), t, p.another.NewLock("d"), longLease)
	lock := multilock.New(p.client.NewLock("a"), p.client.NewLock("b"), p.client.NewLock("c"),
		p.another.NewLock("d"))
	hold := takeWith(b.Context(), t, lock, longLease)
	require.Equal(t, []string{"1"}, levels(t, p.first, "a"))
	require.Equal(t, []string{"2"}, levels(t, p.first, "b"))
	require.Equal(t, []string{"2"}, levels(t, p.second, "d"))
	require.Equal(t, []string{b.Owner()}, p.first.DoStrings(t, "HKEYS", "b"))
	unlock(t, hold)
	require.Equal(t, []string{"b"}, left(t, p.first))
	require.Equal(t, []string{"d"}, left(t, p.second))

	// A failed acquisition does not release them either.
	p.first.Do(t, "HSET", "c", "somebody:1", "1")
	_, err := lock.TryLock(b.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.True(t, b.Valid() && d.Valid())
	p.first.Do(t, "DEL", "c")
	unlock(t, d)
	unlock(t, b)
	requireFree(t, p.first, p.second)
}
