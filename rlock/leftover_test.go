package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// What a call left behind that its caller gave up is undone in the background. These tests are about what happens to the
// lock meanwhile.

func TestOwnerWhoseAcquireIsBeingUndoneAcquiresAgainAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	lock := c.NewLock("order")
	warm(t, c, "order")
	owner := rlock.WithOwner(t.Context())
	for range 20 {
		ctx, cancel := context.WithCancel(owner)
		p.HoldReplies()
		attempt := lockInBackground(ctx, lock, longLease)
		eventually(t, func() bool { return exists(s, "order") }, "not executed")
		cancel()
		require.ErrorIs(t, result(t, attempt).err, context.Canceled)
		again := lockInBackground(owner, lock, longLease)
		p.Pass()
		hold := acquired(t, again)
		require.Equal(t, map[string]string{hold.Owner(): "1"}, counts(t, s))
		inner := takeWith(hold.Context(), t, lock, longLease)
		require.Equal(t, map[string]string{hold.Owner(): "2"}, counts(t, s))
		unlock(t, inner)
		unlock(t, hold) // ErrLost if the clean-up had removed it
		require.Empty(t, counts(t, s))
	}
}

func TestOwnerWhoseReleaseIsInDoubtAcquiresAgainAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{CommandTimeout: 100 * time.Millisecond})
	lock := c.NewLock("order")
	owner := rlock.WithOwner(t.Context())
	for range 5 {
		hold := takeWith(owner, t, lock, longLease)
		p.BlackHole()
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		again := lockInBackground(owner, lock, longLease)
		p.Pass()
		next := acquired(t, again)
		require.Equal(t, map[string]string{next.Owner(): "1"}, counts(t, s))
		require.NotEqual(t, hold.Owner(), next.Owner())
		unlock(t, next)
		require.Empty(t, counts(t, s))
	}
}

// heldWhileRenewing returns a hold with a renewal that is under way and has not reached the server.
func heldWhileRenewing(t *testing.T, s *redistest.Server, lease time.Duration) (*rlock.Hold, *gated) {
	t.Helper()
	gate := keepCommands(s.Client(t), loaded(t, s, "renew.lua"))
	c := newClientOn(t, gate, rlock.Options{WatchdogLease: lease})
	t.Cleanup(gate.open)
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	receive(t, gate.kept, "no renewal")
	return hold, gate
}

func TestRenewalUnderWayDoesNotBringAReleasedLockBack(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	hold, gate := heldWhileRenewing(t, s, lease)
	unlock(t, hold)
	require.Empty(t, counts(t, s))
	gate.open()
	require.Never(t, func() bool { return !absent(s, "order") }, lease, time.Millisecond)
	require.Positive(t, s.CommandStats(t)["evalsha"])
	require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
}

func TestRenewalUnderWayDoesNotRenewTheLockOfTheNextHolder(t *testing.T) {
	t.Parallel()
	const lease = 900 * time.Millisecond
	s := redistest.Start(t)
	other := newClient(t, s, rlock.Options{})
	hold, gate := heldWhileRenewing(t, s, lease)
	unlock(t, hold)
	next := take(t, other.NewLock("order"), lease/2)
	gate.open()
	require.Never(t, func() bool {
		left, err := s.Call("PTTL", "order")
		return err == nil && left.(int64) > (lease/2).Milliseconds()
	}, lease/3, time.Millisecond, "somebody else's lock was renewed")
	require.Equal(t, map[string]string{next.Owner(): "1"}, counts(t, s))
	unlock(t, next)
}

func TestLossEndsAllLevelsAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	outer := take(t, c.NewLock("order"), rlock.Watchdog)
	inner := takeWith(outer.Context(), t, c.NewLock("order"), rlock.Watchdog)
	outerEnded, innerEnded := endedAt(outer), endedAt(inner)
	s.Pause(t)
	first, second := receive(t, outerEnded, "outer level not lost"), receive(t, innerEnded, "inner level not lost")
	require.Less(t, first.Sub(second).Abs(), onTime)
	lostTo(t, inner, watchdog.ErrExpired)
	lostTo(t, outer, watchdog.ErrExpired)
	require.ErrorIs(t, c.NewLock("order").Unlock(outer.Context()), rlock.ErrNotHeld)
	s.Resume(t)
	eventually(t, func() bool { return absent(s, "order") }, "a key is left")
}

// A nested lock that the server executes after the hold was lost would keep the lock for the lease of the nested one.
func TestNestedLockExecutedAfterTheLossIsUndone(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	warm(t, c, "order")
	hold := take(t, c.NewLock("order"), lease)
	p.HoldReplies()
	nested := lockInBackground(hold.Context(), c.NewLock("order"), longLease)
	eventually(t, func() bool {
		count, err := s.Call("HGET", "order", hold.Owner())
		return err == nil && count == "2"
	}, "not executed")
	lostTo(t, hold, watchdog.ErrExpired)
	require.Error(t, result(t, nested).err)
	p.Pass()
	eventually(t, func() bool { return absent(s, "order") }, "the lock is kept for an owner that has given it up")
}

func TestNestedLockInDoubtDoesNotOutliveTheHold(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	warm(t, c, "order")
	hold := take(t, c.NewLock("order"), lease)
	p.CutReply(script(t, "reenter.lua"), 1)
	_, err := c.NewLock("order").TryLock(hold.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.True(t, hold.Valid())
	lostTo(t, hold, watchdog.ErrExpired)
	eventually(t, func() bool { return absent(s, "order") }, "the lock is kept for an owner that has given it up")
}
