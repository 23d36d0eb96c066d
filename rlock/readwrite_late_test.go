package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/internal/redistest"
	"holdfast/internal/suite"
	"holdfast/rlock"
)

// A writer that reads has one name in Redis for all its read holds. What is executed late, and what
// undoes it, must not take the next one.

// lateRelease is a writer that has released a read hold, and the release has not been sent.
type lateRelease struct {
	c     *rlock.Client
	lock  *rlock.ReadWriteLock
	owner context.Context
	write *rlock.Hold
	gate  *stepwise // of all releases of read holds
}

func releasedLate(
	t *testing.T,
	s suite.Server,
	write rlock.Lease,
	read rlock.Lease,
) lateRelease {
	t.Helper()
	gate := &stepwise{Client: s.Client(t, redistest.OneConnection),
		argument: load(t, s, "read_release.lua"),
		arrived:  make(chan struct{}, 1000), step: make(chan struct{})}
	c := newClientOn(t, gate, rlock.Options{CommandTimeout: 2 * time.Second})
	t.Cleanup(func() { close(gate.step) }) // before the client is closed
	lock, owner := c.NewReadWriteLock("page"), rlock.WithOwner(t.Context())
	writing := takeWith(owner, t, lock.Write(), write)
	reading := takeWith(owner, t, lock.Read(), read)
	require.ErrorIs(t, reading.Unlock(), rlock.ErrOutcomeUnknown)
	receive(t, gate.arrived, "not sent")
	return lateRelease{c, lock, owner, writing, gate}
}

// While the owner writes no one else gets in; afterwards the next read hold cannot be trusted.
func TestReadHoldThatALateReleaseMayTakeEndsWithTheWriteHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite.Virtual.Start(t, 1)[0]
		l := releasedLate(t, s, rlock.Lease(7*time.Second), rlock.Lease(time.Minute))
		again := takeWith(l.owner, t, l.lock.Read(), rlock.Lease(time.Minute))
		require.True(t, again.Valid())
		unlock(t, l.write)
		receive(t, again.Done(), "it is trusted")
		require.ErrorIs(t, again.Err(), rlock.ErrLost)
		require.ErrorContains(t, again.Err(), "earlier release")
		eventually(t, func() bool {
			select {
			case l.gate.step <- struct{}{}: // the late one, or the cleanup
			default:
			}
			return s.Do(t, "EXISTS", "page") == int64(0)
		}, "the lock is free")
	})
}

// The watchdog may be late to find that the write lease is over, as after a pause of the process. A
// read hold that begins then is not protected by it.
func TestReadHoldThatALateReleaseMayTakeIsNotTrustedAfterTheWriteLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite.Virtual.Start(t, 1)[0]
		l := releasedLate(
			t,
			s,
			rlock.Lease(6*time.Second),
			rlock.Lease(4*time.Second),
		) // the lock does not outlast the write lease
		stuck, freed := make(chan struct{}), make(chan struct{})
		defer close(freed)
		rlock.Internals(compose.Access{}).OnEnd(take(t, l.c.NewLock("other"), rlock.Lease(time.Second)),
			func(error) { close(stuck); <-freed }) // and the watchdog with it
		receive(t, stuck, "the other lease does not end")
		require.True(t, l.write.Valid())
		eventually(t, func() bool { return s.Do(t, "EXISTS", "page") == int64(0) },
			"the write lease does not end")
		require.False(t, takeWith(l.owner, t, l.lock.Read(), rlock.Lease(time.Minute)).Valid())
	})
}

// A release that was executed before the next read hold was taken takes nothing from it.
func TestReadHoldTakenAfterALateReleaseOutlastsTheWriteHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite.Virtual.Start(t, 1)[0]
		l := releasedLate(t, s, rlock.Lease(time.Minute), rlock.Lease(time.Minute))
		require.Equal(t, 1, rlock.Unconfirmed(l.lock.Read()))
		l.gate.step <- struct{}{}
		eventually(t, func() bool { return rlock.Unconfirmed(l.lock.Read()) == 0 },
			"the reply has not come")
		again := takeWith(l.owner, t, l.lock.Read(), rlock.Lease(time.Minute))
		unlock(t, l.write)
		require.True(t, again.Valid())
		require.Equal(t, "1", s.Do(t, "HGET", "page", again.Owner()))
		require.Equal(t, "read", s.Do(t, "HGET", "page", "mode"))
	})
}

func TestReadHoldAfterAnExpiredOneOfTheSameWriterIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite.Virtual.Start(t, 1)[0]
		gate := keepCommands(s.Client(t, redistest.OneConnection), load(t, s, "read_release.lua"))
		t.Cleanup(gate.open)
		pair := newClientOn(t, gate,
			rlock.Options{CommandTimeout: 2 * time.Second}).NewReadWriteLock("order")
		writing := take(t, pair.Write(), longLease)
		expired := takeWith(writing.Context(), t, pair.Read(), rlock.Lease(2*time.Second))
		<-time.After(time.Until(expired.Deadline()))
		require.ErrorIs(t, expired.Unlock(), rlock.ErrLost)
		receive(t, gate.kept, "nothing is undone")

		again := lockInBackground(writing.Context(), pair.Read(), longLease)
		gate.pass() // what the loss had to undo
		// any other undo is in flight now, or waits for the new hold
		<-time.After(50 * time.Millisecond)
		gate.open()
		reading := acquired(t, again)
		<-time.After(50 * time.Millisecond)
		require.Equal(t, "1", s.Do(t, "HGET", "order", reading.Owner()))
		unlock(t, writing)
		unlock(t, reading)
		require.Equal(t, int64(0), s.Do(t, "EXISTS", "order"))
	})
}

func TestReleaseOfAWriterThatReadsIsADowngradeThoughNoReplyComes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := writing(t, s, rlock.Options{})
	reading := takeWith(w.ctx, t, w.pair.Read(), longLease)
	w.cut(t, "write_release.lua")
	require.ErrorIs(t, w.hold.Unlock(), rlock.ErrOutcomeUnknown)
	require.True(t, reading.Valid())
	require.Equal(t, map[string]string{"mode": "read", reading.Owner(): "1"}, counts(t, s))
	unlock(t, reading)
	waitUntilFree(t, s, "order")
}
