//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// What a call that gave up left behind is undone in the background. These tests are about what
// happens to the lock meanwhile.

// A writer that reads has one name for both. Undoing a read hold that is over must not take the
// next one.
func TestReadHoldAfterAnExpiredOneOfTheSameWriterIsKept(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	s := redistest.Start(t)
	gate := keepCommands(s.Client(t, redistest.OneConnection), loaded(t, s, "read_release.lua"))
	t.Cleanup(gate.open)
	pair := newClientOn(t, gate,
		rlock.Options{CommandTimeout: 2 * time.Second}).NewReadWriteLock("order")
	writing := take(t, pair.Write(), longLease)
	expired := takeWith(writing.Context(), t, pair.Read(), lease)
	<-time.After(time.Until(expired.Deadline()))
	require.ErrorIs(t, expired.Unlock(t.Context()), rlock.ErrLost)
	receive(t, gate.kept, "nothing is undone")

	again := lockInBackground(writing.Context(), pair.Read(), longLease)
	gate.pass() // what the loss had to undo
	// any other undo is in flight now, or waits for the new hold
	<-time.After(50 * time.Millisecond)
	gate.open()
	reading := acquired(t, again)
	<-time.After(50 * time.Millisecond)
	require.Equal(t, "1", s.DoString(t, "HGET", "order", reading.Owner()))
	unlock(t, writing)
	unlock(t, reading)
	requireFree(t, s, "order")
}
