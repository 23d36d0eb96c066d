package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// These tests measure what nodes cost that hang while many locks are taken, HOLDFAST_REDLOCK_LOCKS
// of them. They count goroutines, so they are not parallel.

// boundLease is the lease of all locks here.
const boundLease = 5 * time.Second

// again takes a lock that was just released. Unlock does not wait for all nodes, and together with
// those that hang too many may not have executed it yet.
func again(t *testing.T, l *redlock.Lock, lease time.Duration) (hold *rlock.Hold) {
	t.Helper()
	eventually(t, func() bool {
		var err error
		hold, err = l.TryLock(t.Context(), rlock.NoWait, lease)
		if err != nil {
			requireUnlucky(t, err)
		}
		return err == nil
	}, "the lock is free")
	return hold
}

// requireUnlucky requires the error of a lock that was held; or, while two nodes hang and the
// machine is busy, of nodes that did not reply in time.
func requireUnlucky(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, redlock.ErrNoQuorum),
		"%v", err)
}
