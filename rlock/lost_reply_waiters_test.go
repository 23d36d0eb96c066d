package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Faults that only locks of some kinds can suffer: those with a queue in Redis, and a writer that
// also reads.

// writing returns a read-write lock behind a proxy, with the write lock held, and what cuts the
// next n replies to a script.
func writing(
	t *testing.T, s *redistest.Server, options rlock.Options,
) (*writerOfOrder, func(file string, n int) *faultproxy.Fault) {
	t.Helper()
	c, p := proxied(t, s, options)
	w := &writerOfOrder{pair: c.NewReadWriteLock("order"), ctx: rlock.WithOwner(t.Context())}
	for _, k := range []string{"read", "write"} {
		kindNamed(k).warm(t, c, "order")
	}
	w.hold = takeWith(w.ctx, t, w.pair.Write(), longLease)
	return w, func(file string, n int) *faultproxy.Fault { return p.CutReply(script(t, file), n) }
}

type writerOfOrder struct {
	pair *rlock.ReadWriteLock
	ctx  context.Context // of the owner
	hold *rlock.Hold
}

// loseRead acquires the read lock, and no reply comes, however often the request is sent.
func (w *writerOfOrder) loseRead(t *testing.T, cut func(file string, n int) *faultproxy.Fault) {
	t.Helper()
	lost := cut("read_acquire.lua", 1000)
	_, err := w.pair.Read().TryLock(w.ctx, rlock.NoWait, longLease)
	lost.End()
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

// hash returns the hash of the lock in a mode with the owner's numbers of holds; zeros are left
// out.
func (w *writerOfOrder) hash(mode string, fields ...string) map[string]string {
	hash := map[string]string{"mode": mode}
	for _, field := range fields {
		hash[w.hold.Owner()+field] = "1"
	}
	return hash
}

func TestLostReplyOfAReadLockOfTheWriterIsUndone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w, cut := writing(t, s, rlock.Options{})
	cut("read_acquire.lua", 2)
	reading, err := w.pair.Read().TryLock(w.ctx, longWait, longLease)
	require.NoError(t, err)
	require.Equal(t, w.hash("write", "", ":write"), counts(t, s))
	unlock(t, reading)
	require.Equal(t, w.hash("write", ":write"), counts(t, s))

	w.loseRead(t, cut)
	readHold := "{order}:" + w.hold.Owner() + ":rwlock_timeout:1"
	eventually(t, func() bool { return absent(s, readHold) }, "a read hold that nobody knows of")
	require.Equal(t, w.hash("write", ":write"), counts(t, s))
	require.True(t, w.hold.Valid())

	// A writer that leaves meanwhile must not stay a reader for ever.
	w.loseRead(t, cut)
	unlock(t, w.hold)
	waitUntilFree(t, s, "order")
}

func TestReadLockThatTheWriterTakesAgainIsNotUndone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w, cut := writing(t, s, rlock.Options{})
	for range 20 {
		w.loseRead(t, cut)
		reading := takeWith(w.ctx, t, w.pair.Read(), longLease)
		require.Equal(t, w.hash("write", "", ":write"), counts(t, s))
		unlock(t, reading) // ErrLost if the cleanup had removed it
	}
	unlock(t, w.hold)
	waitUntilFree(t, s, "order")
}
