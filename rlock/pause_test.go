package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// endedAt returns when the hold's context ended.
func endedAt(hold *rlock.Hold) <-chan time.Time {
	ctx, at := hold.Context(), make(chan time.Time, 1)
	go func() {
		<-ctx.Done()
		at <- time.Now()
	}()
	return at
}

func TestHungServerEndsTheHoldAtItsDeadline(t *testing.T) {
	const lease = 500 * time.Millisecond
	bestOf(t, 50*time.Millisecond, func() time.Duration {
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: lease})
		hold := take(t, c.NewLock("order"), rlock.Watchdog)
		explicit := take(t, c.NewLock("another"), lease)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(before) }, "never renewed")
		s.Pause(t)
		paused := time.Now()
		ended, explicitEnded := endedAt(hold), endedAt(explicit)
		late := receive(t, ended, "the context has not ended").Sub(hold.Deadline())
		require.GreaterOrEqual(t, late, time.Duration(0), "ended before its deadline")
		require.Less(t, hold.Deadline().Sub(paused), lease)
		explicitLate := receive(t, explicitEnded, "the context has not ended").Sub(explicit.Deadline())
		require.GreaterOrEqual(t, explicitLate, time.Duration(0), "ended before its deadline")
		lostTo(t, hold, watchdog.ErrExpired)
		lostTo(t, explicit, watchdog.ErrExpired)

		<-time.After(time.Until(paused.Add(2 * lease)))
		s.Resume(t)
		require.Eventually(t, func() bool { return absent(s, "order") && absent(s, "another") }, lease+promptly, time.Millisecond,
			"something kept the lock alive after its hold was over")
		require.Never(t, func() bool { return !absent(s, "order") }, lease, 20*time.Millisecond)
		return max(late, explicitLate)
	})
}

func TestServerThatHangsForLessThanTheLeaseCostsNothing(t *testing.T) {
	t.Parallel()
	const lease = 1200 * time.Millisecond
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	before := hold.Deadline()
	eventually(t, func() bool { return hold.Deadline().After(before) }, "never renewed")
	// From here the deadline is at least 1.1 s away; a renewal is due and fails meanwhile.
	renewed := hold.Deadline()
	s.Pause(t)
	<-time.After(lease / 2)
	s.Resume(t)
	eventually(t, func() bool { return hold.Deadline().After(renewed.Add(lease / 3)) }, "not renewed any more")
	require.NoError(t, hold.Err())
	require.True(t, hold.Valid())
	unlock(t, hold)
}

// A renewal that was under way when the lock was given up may be executed, and would keep others out for another lease.
func TestRenewalExecutedAfterTheDeadlineIsUndone(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{WatchdogLease: lease})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	p.HoldReplies()
	expired := hold.Deadline()
	lostTo(t, hold, watchdog.ErrExpired)
	require.False(t, time.Now().Before(expired))
	require.True(t, exists(s, "order"), "no renewal was executed: this test proves nothing")
	p.Pass()
	require.Eventually(t, func() bool { return absent(s, "order") }, lease/2, time.Millisecond)
}
