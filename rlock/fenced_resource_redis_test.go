//go:build redis

package rlock_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestWriteOfAHolderThatWasStoppedBeyondItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	var table ledger
	stopped := startProcess(t, "ledger keeper", s.Addr(), lease.String())
	// written returns the token of the next write of the process.
	written := func() (token int64) {
		_, err := fmt.Sscan(stopped.Line(t), &token)
		require.NoError(t, err)
		return token
	}
	token := written() // it writes when it holds the lock
	stopped.Tell(t, "write")
	require.NoError(t, table.write("by the first", written()))

	require.NoError(t, stopped.Signal(syscall.SIGSTOP))
	c := newClient(t, s, rlock.Options{})
	next := acquired(t, lockInBackground(t.Context(), c.NewFencedLock("ledger"), longLease))
	require.Greater(t, next.Token(), token)
	require.NoError(t, table.write("by the second", next.Token()))

	stopped.Tell(t, "write") // which it does first
	require.NoError(t, stopped.Signal(syscall.SIGCONT))
	late := written()
	require.Equal(t, token, late)
	require.ErrorIs(t, table.write("by the first, late", late), errStale)
	require.Equal(t, "by the second", table.entry)

	require.True(t, next.Valid())
	require.NoError(t, table.write("by the second again", next.Token()))
	stopped.Tell(t, "end")
	require.Equal(t, "true", stopped.Line(t), "its Unlock does not say that the lock was lost")
	stopped.Wait(t)
	require.Equal(t, next.Owner(), s.DoStrings(t, "HKEYS", "ledger")[0])
	unlock(t, next)
}
