//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestRenewalIsRetriedAfterALostReply(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		const lease = 6 * time.Second
		c, p := proxied(t, s, rlock.Options{WatchdogLease: lease})
		hold := take(t, k.lock(c, "order"), rlock.Watchdog)
		inner := takeWith(hold.Context(), t, k.lock(c, "order"), rlock.Watchdog)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(before) },
			"never renewed: the script is not known yet")
		cut := p.CutReply(script(t, k.renew), 3)
		eventually(t, func() bool { return cut.Done() == 3 }, "no renewal was tried again")
		after := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(after) || hold.Err() != nil },
			"not renewed")
		require.NoError(t, hold.Err())
		require.Equal(t, k.hash(hold.Owner(), 2), counts(t, s))
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, s, "order")
	})
}

func TestReleaseWhoseRepliesAreAllLostIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), longLease)
		p.CutReply(script(t, k.release), 1000)
		within(t, shortTimeout+promptly, func() {
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		})
		requireFree(t, s, "order")
	})
}

// When the server resumes it executes what is in its buffers, however old that is: the lease begins
// then.
func TestAcquireExecutedAfterItsLeaseIsReleased(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 4 * time.Second
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{}, redistest.OneConnection)
		k.warm(t, c, "order")
		s.Pause(t)
		_, err := k.lock(c, "order").TryLock(t.Context(), 100*time.Millisecond, lease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		<-time.After(lease)
		s.Resume(t)
		resumed := time.Now()
		waitUntilFree(t, s, "order")
		require.Less(t, time.Since(resumed), lease/2)
	})
}

func TestAcquireWhoseReplyComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 2 * time.Second
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		p.HoldReplies()
		attempt := lockInBackground(t.Context(), k.lock(c, "order"), lease)
		eventually(t, func() bool { return exists(s, "order") }, "not executed")
		<-time.After(lease)
		replied := time.Now()
		p.Pass()
		hold := acquired(t, attempt)
		require.Greater(t, hold.Deadline().Sub(replied), lease/2,
			"the deadline counts from the first try")
		require.Equal(t, k.hash(hold.Owner(), 1), counts(t, s))
		unlock(t, hold)
	})
}
