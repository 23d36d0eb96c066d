package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestFairQueueSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder := newClient(t, s, rlock.Options{}).NewFairLock("job")
	// A busy machine may need seconds for an operation that is tried three times.
	c, p := proxied(t, s, rlock.Options{CommandTimeout: longWait})
	lock := c.NewFairLock("job")
	kindNamed("fair").warm(t, c, "job")
	kindNamed("fair").warm(t, newClient(t, s, rlock.Options{}), "job")
	hold := take(t, holder, longLease)

	cut := p.CutReply(script(t, "fair_acquire.lua"), 2) // of the queueing
	behindIt := waitInTurn(t, s, lock)[0]
	eventually(t, func() bool { return cut.Done() == 2 }, "not tried again")
	first := waitForFairQueue(t, s, 1)
	last := waitInTurn(t, s, holder)[0]
	queue := waitForFairQueue(t, s, 2)
	require.Equal(t, first[0], queue[0], "it lost its place")

	cut = p.CutReply(script(t, "fair_acquire.lua"), 1) // of the taking
	unlock(t, hold)
	hold = acquired(t, behindIt.done)
	require.Equal(t, 1, cut.Done())
	require.Equal(t, first[0], hold.Owner())
	require.Equal(t, map[string]string{first[0]: "1"}, s.DoMap(t, "HGETALL", "job"))
	require.Equal(t, queue[1:], s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"))

	cut = p.CutReply(script(t, "fair_release.lua"), 2) // of the release
	unlock(t, hold)
	require.Equal(t, 2, cut.Done())
	hold = acquired(t, last.done)

	gone := waitInTurn(t, s, lock)[0]
	behind := waitInTurn(t, s, holder)[0]
	before := fairScore(t, s, waitForFairQueue(t, s, 2)[1])
	cut = p.CutReply(script(t, "fair_release.lua"), 2) // of the leaving
	gone.leave()
	require.ErrorIs(t, result(t, gone.done).Err, context.Canceled)
	eventually(t, func() bool { return cut.Done() == 2 }, "not tried again")
	after := fairScore(t, s, waitForFairQueue(t, s, 1)[0])
	require.InDelta(t, 5*time.Minute.Milliseconds(), before-after, 20_000,
		"the window was not taken off once")
	unlock(t, hold)
	unlock(t, acquired(t, behind.done))
	requireNothingFairLeft(t, s)
}

// A server without persistence forgets the queue. Its waiters queue again.
func TestFairWaitersOutlastARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	take(t, lock, longLease)
	waiters := waitInTurn(t, s, lock, lock, lock)
	s.Kill(t)
	s.Restart(t)
	served := make(chan outcome, len(waiters))
	for _, w := range waiters {
		go func() {
			o := <-w.done
			if o.Err == nil {
				o.Err = o.Hold.Unlock(t.Context())
			}
			served <- o
		}()
	}
	for range waiters {
		require.NoError(t, receive(t, served, "not served after the restart").Err)
	}
	requireNothingFairLeft(t, s)
}
