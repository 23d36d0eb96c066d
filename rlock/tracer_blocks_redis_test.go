//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A tracer that blocks in the background keeps neither renewals nor the end of a hold.
func TestTracerThatBlocksDelaysNoRenewalAndNoLoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	blocked, unblock := make(chan struct{}, 1), make(chan struct{})
	var log logtest.Lines
	tr := &locktest.Tracer{Block: func(event any) {
		if _, renewal := event.(rlock.RenewalEnd); renewal {
			select {
			case blocked <- struct{}{}:
			default:
			}
			<-unblock
		}
	}}
	c := newClient(t, s, rlock.Options{WatchdogLease: 2 * time.Second, Tracer: tr,
		Logger: log.Logger()})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	receive(t, blocked, "no renewal")
	for range 3 {
		waitForRenewal(t, []*rlock.Hold{hold})
	}
	require.Empty(t, log.With("blocks"))
	for range 4096 {
		rlock.TellRenewed(hold)
	}
	eventually(t, func() bool { return len(log.With("blocks")) == 1 }, "there is room for more")
	s.Do(t, "DEL", "order")
	lostTo(t, hold, rlock.ErrGone)
	unlock(t, take(t, c.NewLock("order"), longLease))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Close(ctx), context.Canceled, "Close waits for the tracer while it may")
	close(unblock)
	closeClient(t, c)
	ends := locktest.Heard[rlock.HoldEnd](tr)
	require.Len(t, ends, 2)
	require.ErrorIs(t, ends[1].Err, rlock.ErrLost, "told although renewals were left out")
	require.Less(t, len(locktest.Heard[rlock.RenewalEnd](tr)), 4200)
}
