package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

// One call of the owner keeps the session of b locked while it waits for b, and a MultiLock of a
// and b waits for that session. Neither blocks a.
func TestMultiLockThatWaitsForTheSessionOfAPartBlocksNoOther(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	a, b := p.client.NewLock("a"), p.client.NewLock("b")
	theirs := take(t, p.client.NewLock("b"), longLease)
	ctx, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
	defer cancel()
	hold := takeWith(ctx, t, a, longLease)
	alone := lockInBackground(ctx, b, longLease)
	waitForListener(t, p.first, "b")
	both := lockInBackground(ctx, multilock.New(a, b), longLease)
	// Some of these calls come after the MultiLock has begun to wait.
	over := time.After(200 * time.Millisecond)
	for waiting := true; waiting; {
		select {
		case <-over:
			waiting = false
		default:
		}
		within(t, promptly, func() { require.NoError(t, hold.Extend(t.Context(), longLease)) })
	}
	within(t, promptly, func() { unlock(t, hold) })
	require.Empty(t, alone)
	require.Empty(t, both)

	unlock(t, theirs)
	unlock(t, acquired(t, alone))
	unlock(t, acquired(t, both))
	requireFree(t, p.first)
}
