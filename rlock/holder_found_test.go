package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Thousands of waiters that give up must not keep the watchdog, nor look at all that it renews.
func TestHolderOfThisProcessIsFoundWithoutTheWatchdog(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.contender(c, k.name)
		hold, found := take(t, lock, longLease), make(chan *rlock.HeldError, 1)
		rlock.WhileTheWatchdogIsBusy(c, func() {
			go func() { found <- rlock.HeldBy(c.NewNonReentrantLock(k.name), hold.Owner()) }()
			select {
			case held := <-found:
				require.NotEmpty(t, held.HolderKind)
			case <-time.After(10 * time.Second):
				t.Error("it waits for the watchdog")
			}
		})
		unlock(t, hold)
		require.Empty(t, rlock.HeldBy(lock, hold.Owner()).HolderKind)
	})
}

// A writer that reads has one name in Redis: as long as it writes, it is reported as the writer.
func TestWriterThatReadsIsReportedAsTheWriter(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	lock := c.NewReadWriteLock("page")
	ctx := rlock.WithOwner(t.Context())
	write := takeWith(ctx, t, lock.Write(), longLease)
	read := takeWith(ctx, t, lock.Read(), longLease)
	require.Equal(t, "write", rlock.HeldBy(lock.Write(), read.Owner()).HolderKind)
	unlock(t, write)
	require.Equal(t, "read", rlock.HeldBy(lock.Write(), read.Owner()).HolderKind)
	unlock(t, read)
	require.Empty(t, rlock.HeldBy(lock.Write(), read.Owner()).HolderKind)
}

// The watchdog may report the loss of a read hold when its writer has released it and reads again,
// under the same name in Redis.
func TestReaderIsFoundAfterALateLossOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	lock := c.NewReadWriteLock("page")
	ctx := rlock.WithOwner(t.Context())
	write := takeWith(ctx, t, lock.Write(), longLease)
	earlier := takeWith(ctx, t, lock.Read(), longLease)
	unlock(t, earlier)
	read := takeWith(ctx, t, lock.Read(), longLease)
	require.Equal(t, earlier.Owner(), read.Owner())
	unlock(t, write)
	rlock.LoseLate(earlier)
	require.Equal(t, "read", rlock.HeldBy(lock.Write(), read.Owner()).HolderKind)
	unlock(t, read)
}
