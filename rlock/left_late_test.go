package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A grant message may be about the lock that was left, but not once its lease is over: then a
// release has granted the lock to an owner that waits no longer, and others wait for it.
func TestGrantAfterTheLeaseOfALeftLockIsGivenBack(t *testing.T) {
	inBubble(t, anonymous, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, 2*time.Second)
		rlock.Register(hold)
		hold.Leave()
		time.Sleep(time.Second)
		rlock.GrantLate(b.client, hold)
		synctest.Wait()
		require.Empty(t, b.called("release.lua"), "the lock that was left is released")
		time.Sleep(7 * time.Second) // the lease, and a CommandTimeout
		rlock.GrantLate(b.client, hold)
		synctest.Wait()
		require.Len(t, b.called("release.lua"), 1)
	})
}

// Close ends the pause before a clean-up, but not the lock that was left.
func TestCloseDoesNotEndALeftLockWithALateRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := &givenUp{Client: s.Client(t), argument: "order", kept: make(chan []string, 1),
		giveUp: make(chan struct{})}
	c := newClientOn(t, redis, anonymous)
	rlock.Detach(c)
	unlock(t, take(t, c.NewLock("warm"), longLease))
	locking := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	receive(t, redis.kept, "nothing is sent")
	close(redis.giveUp)
	acquired(t, locking).Leave()
	closeClient(t, c)
	require.True(t, exists(s, "order"))
}

// The lease in Redis begins when the command gets there, and ends later than the deadline of the
// hold, by the drift of all of it.
func TestLeftLockWithALateRequestStaysForAllOfItsLease(t *testing.T) {
	const delay, lease = 2 * time.Second, time.Hour
	inBubble(t, anonymous, func(t *testing.T, b *bubble) {
		b.reply("acquire.lua", func([]string) any {
			time.Sleep(delay)
			return nil
		})
		hold := take(t, b.lock, lease)
		rlock.MakeLate(hold, lease)
		time.Sleep(time.Until(hold.Deadline()) - time.Second)
		hold.Leave()
		time.Sleep(lease)
		released := b.called("release.lua")
		require.NotEmpty(t, released, "it is not cleaned up")
		require.GreaterOrEqual(t, released[0], delay+lease)
	})
}
