package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Its context was passed down, so a text about contexts would lead nowhere.
func TestOwnerThatUsesTwoKindsUnderOneNameIsToldSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("x"), longLease)
	_, err := c.NewFairLock("x").Lock(hold.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrDeadlock)
	require.ErrorContains(t, err,
		`lock "x" is held by the caller itself as a reentrant lock, not a fair one`)
	require.ErrorContains(t, err, "use one kind of lock for one name")
	require.NotContains(t, err.Error(), "Context()")
	_, err = other.NewLock("x").Lock(hold.Context(), longLease)
	require.ErrorContains(t, err, `held by the caller itself through another client; use one client`)
	unlock(t, hold)
}

// Nothing wakes the waiter: it would notice the release up to five seconds later, in silence.
func TestWaiterForANameThatIsHeldAsAnotherKindWarnsOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	holder := newClient(t, s, rlock.Options{})
	waiter := newClient(t, s, rlock.Options{Logger: log.Logger()})
	refused := func(l *rlock.Lock) {
		err := rlock.ErrOutcomeUnknown
		for errors.Is(err, rlock.ErrOutcomeUnknown) { // no reply in time
			_, err = l.TryLock(t.Context(), 50*time.Millisecond, longLease)
		}
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	}
	fair := take(t, holder.NewFairLock("x"), longLease)
	for range 2 {
		refused(waiter.NewLock("x"))
	}
	refused(waiter.NewFairLock("x"))
	unlock(t, fair)
	plain := take(t, holder.NewNonReentrantLock("y"), longLease)
	refused(waiter.NewLock("y"))
	unlock(t, plain)
	writer := take(t, holder.NewReadWriteLock("z").Write(), longLease)
	refused(waiter.NewFairLock("z"))
	unlock(t, writer)
	closeClient(t, waiter)
	warnings := log.With("use one kind of lock for one name")
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0],
		"a caller waits for a plain lock, but the name is held as a fair lock")
	require.Contains(t, warnings[0], fair.Owner())
	require.Contains(t, warnings[1],
		"a caller waits for a fair lock, but the name is held as a read-write lock")
}
