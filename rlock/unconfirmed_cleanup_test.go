//go:build redis

package rlock_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// What a call that gave up left behind is undone in the background. These tests are about what
// happens to the lock meanwhile.

// waitForOnly waits until only one level of a hold is left of the lock "order".
func waitForOnly(t *testing.T, s *redistest.Server, k kind, hold *rlock.Hold) {
	t.Helper()
	eventually(t, func() bool { return maps.Equal(k.hash(hold.Owner(), 1), counts(t, s)) },
		"something else is left")
}

func TestOwnerWhoseAcquireIsBeingUndoneAcquiresAgainAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		lock := k.lock(c, "order")
		k.warm(t, c, "order")
		owner := rlock.WithOwner(t.Context())
		for range 20 {
			ctx, cancel := context.WithCancel(owner)
			p.HoldReplies()
			attempt := lockInBackground(ctx, lock, longLease)
			eventually(t, func() bool { return exists(s, "order") }, "not executed")
			cancel()
			require.ErrorIs(t, result(t, attempt).Err, context.Canceled)
			again := lockInBackground(owner, lock, longLease)
			p.Pass()
			hold := acquired(t, again)
			waitForOnly(t, s, k, hold) // a reader may be in before that
			inner := takeWith(hold.Context(), t, lock, longLease)
			require.Equal(t, k.hash(hold.Owner(), 2), counts(t, s))
			unlock(t, inner)
			unlock(t, hold) // ErrLost if the cleanup had removed it
			requireFree(t, s, "order")
		}
	})
}

func TestOwnerWhoseReleaseIsUnconfirmedAcquiresAgainAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: 1500 * time.Millisecond})
		lock := k.lock(c, "order")
		owner := rlock.WithOwner(t.Context())
		for range 5 {
			hold := takeWith(owner, t, lock, longLease)
			p.BlackHole()
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
			again := lockInBackground(owner, lock, longLease)
			p.Pass()
			next := acquired(t, again)
			waitForOnly(t, s, k, next)
			require.NotEqual(t, hold.Owner(), next.Owner())
			unlock(t, next)
			requireFree(t, s, "order")
		}
	})
}

// heldWhileRenewing returns a hold with a renewal in flight that has not reached the server.
func heldWhileRenewing(
	t *testing.T, s *redistest.Server, k kind, lease time.Duration,
) (*rlock.Hold, *gated) {
	t.Helper()
	gate := keepCommands(s.Client(t, redistest.OneConnection), loaded(t, s, k.renew))
	c := newClientOn(t, gate, rlock.Options{WatchdogLease: lease})
	t.Cleanup(gate.open)
	hold := take(t, k.lock(c, "order"), rlock.Watchdog)
	receive(t, gate.kept, "no renewal")
	return hold, gate
}

func TestRenewalInFlightDoesNotBringAReleasedLockBack(t *testing.T) {
	t.Parallel()
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 3 * time.Second
		s := redistest.Start(t)
		hold, gate := heldWhileRenewing(t, s, k, lease)
		unlock(t, hold)
		requireFree(t, s, "order")
		gate.open()
		require.Never(t, func() bool { return !absent(s, "order") }, lease, time.Millisecond)
		require.Positive(t, s.CommandStats(t)["evalsha"])
		require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
	})
}

func TestRenewalInFlightDoesNotRenewTheLockOfTheNextHolder(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 6 * time.Second
		s := redistest.Start(t)
		other := newClient(t, s, rlock.Options{})
		hold, gate := heldWhileRenewing(t, s, k, lease)
		unlock(t, hold)
		next := take(t, k.lock(other, "order"), lease/2)
		gate.open()
		require.Never(t, func() bool {
			left, err := s.Call("PTTL", "order")
			return err == nil && left.(int64) > (lease/2).Milliseconds()
		}, lease/6, time.Millisecond, "somebody else's lock was renewed")
		require.Equal(t, k.hash(next.Owner(), 1), counts(t, s))
		unlock(t, next)
	})
}

func TestLossEndsAllLevelsAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("to the nanosecond", func(t *testing.T) {
		inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
			outer := take(t, b.lock, rlock.Watchdog)
			time.Sleep(time.Second) // so that the levels would end one after the other
			inner := takeWith(outer.Context(), t, b.lock, rlock.Watchdog)
			outerEnded, innerEnded := endedAt(outer), endedAt(inner)
			b.server.Pause()
			require.Equal(t, <-outerEnded, <-innerEnded)
			require.ErrorIs(t, inner.Err(), watchdog.ErrExpired)
			require.ErrorIs(t, outer.Err(), watchdog.ErrExpired)
		})
	})
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second})
		outer := take(t, k.lock(c, "order"), rlock.Watchdog)
		inner := takeWith(outer.Context(), t, k.lock(c, "order"), rlock.Watchdog)
		s.Pause(t)
		lostTo(t, inner, watchdog.ErrExpired)
		lostTo(t, outer, watchdog.ErrExpired) // a moment later: inner levels end before outer ones
		require.ErrorIs(t, k.lock(c, "order").Unlock(outer.Context()), rlock.ErrNotHeld)
		s.Resume(t)
		waitUntilFree(t, s, "order")
	})
}

// A nested lock that the server executes after the loss would keep the lock for its lease.
func TestNestedLockExecutedAfterTheLossIsUndone(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 3 * time.Second
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), lease)
		p.HoldReplies()
		nested := lockInBackground(hold.Context(), k.lock(c, "order"), longLease)
		eventually(t, func() bool {
			count, err := s.Call("HGET", "order", k.field(hold.Owner()))
			return err == nil && count == "2"
		}, "not executed")
		lostTo(t, hold, watchdog.ErrExpired)
		require.Error(t, result(t, nested).Err)
		p.Pass()
		waitUntilFree(t, s, "order")
	})
}

func TestUnconfirmedNestedLockDoesNotOutliveTheHold(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 3 * time.Second
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), lease)
		p.CutReply(script(t, k.reenter), 1000)
		_, err := k.lock(c, "order").TryLock(hold.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.True(t, hold.Valid())
		lostTo(t, hold, watchdog.ErrExpired)
		waitUntilFree(t, s, "order")
	})
}

// A writer that reads has one name for both. Undoing a read hold that is over must not take the
// next one.
func TestReadHoldAfterAnExpiredOneOfTheSameWriterIsKept(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	s := redistest.Start(t)
	gate := keepCommands(s.Client(t, redistest.OneConnection), loaded(t, s, "read_release.lua"))
	t.Cleanup(gate.open)
	pair := newClientOn(t, gate,
		rlock.Options{CommandTimeout: 2 * time.Second}).NewReadWriteLock("order")
	writing := take(t, pair.Write(), longLease)
	expired := takeWith(writing.Context(), t, pair.Read(), lease)
	<-time.After(time.Until(expired.Deadline()))
	require.ErrorIs(t, expired.Unlock(t.Context()), rlock.ErrLost)
	receive(t, gate.kept, "nothing is undone")

	again := lockInBackground(writing.Context(), pair.Read(), longLease)
	gate.pass() // what the loss had to undo
	// any other undo is in flight now, or waits for the new hold
	<-time.After(50 * time.Millisecond)
	gate.open()
	reading := acquired(t, again)
	<-time.After(50 * time.Millisecond)
	require.Equal(t, "1", s.DoString(t, "HGET", "order", reading.Owner()))
	unlock(t, writing)
	unlock(t, reading)
	requireFree(t, s, "order")
}
