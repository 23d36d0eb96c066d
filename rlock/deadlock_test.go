package rlock_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// The mistake: WithOwner in a function that is called inside a section of its caller.
func TestCallerThatWaitsForItselfGetsErrDeadlockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{Debug: true})
	other := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		hold := take(t, k.contender(c, k.name), longLease)
		for name, lock := range map[string]*rlock.Lock{
			"another owner":  k.lock(c, k.name),
			"another client": k.lock(other, k.name),
			"another kind":   c.NewNonReentrantLock(k.name),
		} {
			_, err := lock.Lock(rlock.WithOwner(hold.Context()), longLease)
			require.ErrorIs(t, err, rlock.ErrDeadlock, name)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err, "held by the caller itself")
			require.Regexp(t, `acquired at .*\.go:\d+`, err.Error())
		}
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

// nestings are the contexts that a caller may pass to a nested call, by that of the outer call.
var nestings = map[string]func(*rlock.Hold, context.Context) context.Context{
	"hold's context": func(h *rlock.Hold, _ context.Context) context.Context {
		return h.Context()
	},
	"owner's context": func(_ *rlock.Hold, ctx context.Context) context.Context {
		return ctx
	},
	"derived context": func(h *rlock.Hold, _ context.Context) context.Context {
		return context.WithoutCancel(h.Context())
	},
}

func TestCircleOfCallersIsErrDeadlockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		for way, nested := range nestings {
			c := newClient(t, s, rlock.Options{Debug: true})
			names := []string{k.name + way + "1", k.name + way + "2", k.name + way + "3"}
			var inside []context.Context
			var holds []*rlock.Hold
			for _, name := range names {
				ctx := rlock.WithOwner(t.Context())
				hold := takeWith(ctx, t, k.contender(c, name), longLease)
				holds, inside = append(holds, hold), append(inside, nested(hold, ctx))
			}
			var waiting []<-chan outcome
			for i := range 2 { // 2 waits for 1, 3 for 2
				waiting = append(waiting, lockInBackground(inside[i+1], k.lock(c, names[i]), longLease))
				eventually(t, func() bool { return rlock.BlockedCalls(c) == i+1 }, "does not wait")
			}
			_, err := k.lock(c, names[2]).Lock(inside[0], longLease)
			require.ErrorIs(t, err, rlock.ErrDeadlock, way)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			for _, name := range names {
				require.ErrorContains(t, err, `"`+name+`"`)
			}
			require.Regexp(t, `acquired at .*\.go:\d+, waited for at .*\.go:\d+`, err.Error())
			for i, hold := range holds {
				unlock(t, hold)
				if i < 2 {
					unlock(t, acquired(t, waiting[i]))
				}
			}
			require.Zero(t, rlock.BlockedCalls(c))
			closeClient(t, c)
		}
		waitForNothingLeft(t, s)
	})
}

func TestCircleThroughAMultiLockIsErrDeadlock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	b := takeWith(t.Context(), t, c.NewLock("b"), longLease)
	both := lockInBackground(t.Context(), multilock.NewOn(c, "a", "b"), longLease) // waits for b
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 1 }, "does not wait")
	_, err := c.NewLock("a").Lock(b.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrDeadlock)
	unlock(t, b)
	unlock(t, acquired(t, both))
	requireFree(t, s, "a")
}

// Goroutines below one hold share its owner. What one of them holds, another does not.
func TestWhatASiblingHoldsIsNoCircle(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	parent := take(t, c.NewLock("parent"), longLease)
	mine := takeWith(parent.Context(), t, c.NewLock("mine"), longLease) // of one goroutine
	theirs := take(t, c.NewLock("theirs"), longLease)
	sibling := lockInBackground(parent.Context(), c.NewLock("theirs"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 1 }, "does not wait")
	waiting := lockInBackground(theirs.Context(), c.NewLock("mine"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 2 }, "does not wait")
	unlock(t, mine)
	unlock(t, acquired(t, waiting))
	unlock(t, theirs)
	unlock(t, acquired(t, sibling))
	unlock(t, parent)
}

func TestReadersDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{WriterPreference: rlock.PreferNobody})
	a, b := c.NewReadWriteLock("a").Read(), c.NewReadWriteLock("b").Read()
	first, second := take(t, a, longLease), take(t, b, longLease)
	unlock(t, takeWith(first.Context(), t, b, longLease))
	unlock(t, takeWith(second.Context(), t, a, longLease))
	unlock(t, first)
	unlock(t, second)
}

// A middleware's context goes to several goroutines: what one holds the other does not wait with.
func TestWhatIsAcquiredWithEnsureOwnerIsNoPartOfACircle(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	request := rlock.EnsureOwner(t.Context())
	y := takeWith(request, t, c.NewLock("y"), longLease) // of one goroutine of the request
	z := take(t, c.NewLock("z"), longLease)
	other := lockInBackground(request, c.NewLock("z"), longLease)
	waiting := lockInBackground(z.Context(), c.NewLock("y"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 1 }, "does not wait")
	unlock(t, y)
	unlock(t, acquired(t, waiting))
	unlock(t, z)
	unlock(t, acquired(t, other))
}

func TestLocksOfOneNameInTwoDatabasesAreTwo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first := newClient(t, s, rlock.Options{})
	second := newClient(t, s, rlock.Options{}, func(o *rueidis.ClientOption) { o.SelectDB = 1 })
	hold, other := take(t, first.NewLock("x"), longLease), take(t, second.NewLock("x"), longLease)
	waiting := lockInBackground(rlock.WithOwner(hold.Context()), second.NewLock("x"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(second) == 1 }, "does not wait")
	unlock(t, other)
	unlock(t, acquired(t, waiting))
	unlock(t, hold)
}

func TestLostHoldIsNoPartOfACircle(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	outer := take(t, c.NewLock("outer"), longLease)
	lost := takeWith(outer.Context(), t, c.NewLock("x"), longLease)
	ctx := context.WithoutCancel(lost.Context())
	_, err := c.NewLock("x").ForceUnlock(t.Context())
	require.NoError(t, err)
	third, y := take(t, c.NewLock("x"), longLease), take(t, c.NewLock("y"), longLease)
	waiting := lockInBackground(y.Context(), c.NewLock("x"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 1 }, "does not wait")
	other := lockInBackground(ctx, c.NewLock("y"), longLease)
	eventually(t, func() bool { return rlock.BlockedCalls(c) == 2 }, "does not wait")
	unlock(t, third)
	unlock(t, acquired(t, waiting))
	unlock(t, y)
	unlock(t, acquired(t, other))
	unlock(t, outer)
}

func TestCallerThatWaitsForItselfThroughAnotherClientGetsErrDeadlock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first, second := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	hold := take(t, first.NewLock("x"), longLease)
	_, err := second.NewLock("x").Lock(hold.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrDeadlock)
	unlock(t, hold)
}

// A writer may read, even if it is refused at first.
func TestWriterThatWaitsToReadDoesNotWaitForItself(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		lock, tries := b.client.NewReadWriteLock("page"), 0
		held := heldFor(10)
		b.reply("read_acquire.lua", func(args []string) any {
			if tries++; tries == 1 {
				return held(args)
			}
			return nil
		})
		writing := take(t, lock.Write(), longLease)
		reading, err := lock.Read().Lock(writing.Context(), longLease)
		require.NoError(t, err)
		require.Equal(t, 2, tries)
		unlock(t, reading)
		unlock(t, writing)
	})
}
