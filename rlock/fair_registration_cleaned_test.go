package rlock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The longest possible wait, as some write "for ever", must not overflow the time at which a waiter
// is dropped.
func TestWaiterWithoutLimitLeavesTheQueueAlsoAfterAnOutage(t *testing.T) {
	t.Parallel()
	const lease = 100 * time.Millisecond
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	kindNamed("fair").warm(t, c, "job")
	hold := take(t, newClient(t, s, rlock.Options{}).NewFairLock("job"), longLease)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiter := inBackground(
		func() (*rlock.Hold, error) { return c.NewFairLock("job").TryLock(ctx, math.MaxInt64, lease) },
	)
	queued := func() int64 { return s.DoInt(t, "LLEN", "redisson_lock_queue:{job}") }
	eventually(t, func() bool { return queued() == 1 }, "it is queued")
	p.Refuse()
	p.Reset()
	cancel()
	require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
	<-time.After(3 * lease)
	require.EqualValues(t, 1, queued())
	require.NoError(t, p.Accept())
	eventually(t, func() bool { return queued() == 0 }, "it leaves the queue")
	unlock(t, hold)
}
