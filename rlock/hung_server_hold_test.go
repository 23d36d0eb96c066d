//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// All kinds are tested at the same time, so that a server need hang only once.

func TestHungServerEndsTheHoldAtItsDeadline(t *testing.T) {
	const lease = 1500 * time.Millisecond
	bestOf(t, 50*time.Millisecond, func() time.Duration {
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: lease})
		var renewed, holds []*rlock.Hold
		for _, k := range kinds {
			renewed = append(renewed, take(t, k.lock(c, k.name), rlock.Watchdog))
			holds = append(holds, take(t, k.lock(c, k.name+" with a lease"), lease))
		}
		waitForRenewal(t, renewed)
		s.Pause(t)
		paused := time.Now()
		holds = append(holds, renewed...)
		ended := make([]<-chan time.Time, len(holds))
		for i, hold := range holds {
			ended[i] = endedAt(hold)
		}
		var latest time.Duration
		for i, hold := range holds {
			late := receive(t, ended[i], "the context has not ended").Sub(hold.Deadline())
			require.GreaterOrEqual(t, late, time.Duration(0), "%s ended before its deadline",
				hold.Name())
			require.Less(t, hold.Deadline().Sub(paused), lease)
			lostTo(t, hold, watchdog.ErrExpired)
			latest = max(latest, late)
		}

		<-time.After(time.Until(paused.Add(2 * lease)))
		s.Resume(t)
		gone := func() bool {
			keys, ok := left(s)
			return ok && len(keys) == 0
		}
		require.Eventually(t, gone, lease+promptly, time.Millisecond,
			"something kept a lock alive after its hold was over")
		require.Never(t, func() bool { return !gone() }, lease, 20*time.Millisecond)
		return latest
	})
}

func TestServerThatHangsForLessThanTheLeaseCostsNothing(t *testing.T) {
	t.Parallel()
	const lease = 9 * time.Second
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	var holds []*rlock.Hold
	for _, k := range kinds {
		holds = append(holds, take(t, k.lock(c, k.name), rlock.Watchdog))
	}
	renewed := waitForRenewal(t, holds)
	// From here the deadlines are at least 6 s away; a renewal comes due and fails meanwhile.
	s.Pause(t)
	<-time.After(lease / 2)
	s.Resume(t)
	for i, hold := range holds {
		eventually(
			t,
			func() bool { return hold.Deadline().After(renewed[i].Add(lease/3)) || hold.Err() != nil },
			"not renewed any more",
		)
		require.NoError(t, hold.Err(), hold.Name())
		require.True(t, hold.Valid())
		unlock(t, hold)
	}
}

// A renewal in flight when the lock was given up may be executed, and would keep others out for
// another lease.
func TestRenewalExecutedAfterTheDeadlineIsUndone(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second // shorter than rueidis waits for a reply
	o := rlock.Options{WatchdogLease: lease, Anonymous: true}
	inBubbleOnEveryKind(t, o, func(t *testing.T, b *bubble, k kind) {
		proceed := make(chan struct{})
		b.reply(k.renew, func(args []string) any {
			<-proceed
			return granted[k.renew](args)
		})
		hold := take(t, b.lock, rlock.Watchdog)
		<-hold.Done()         // nobody unlocks it, which would undo it, too
		time.Sleep(lease / 4) // the reply never came in time
		executed := time.Since(b.start)
		close(proceed)
		time.Sleep(lease)
		released := b.called(k.release)
		require.NotEmpty(t, released)
		require.GreaterOrEqual(t, released[len(released)-1], executed,
			"nothing is released after the renewal")
		lostTo(t, hold, watchdog.ErrExpired)
	})
}
