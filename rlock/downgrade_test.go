package rlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests are about a writer that reads, and about either hold when the other ends.

// writerThatReads acquires the write and the read lock with one owner.
func writerThatReads(
	t *testing.T, lock *rlock.ReadWriteLock, writing, reading time.Duration,
) (write, read *rlock.Hold) {
	t.Helper()
	owner := rlock.WithOwner(t.Context())
	return takeWith(owner, t, lock.Write(), writing), takeWith(owner, t, lock.Read(), reading)
}

func TestDowngradeLetsReadersInAtOnceAndKeepsWritersOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, d := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	lock := c.NewReadWriteLock("page")
	write, read := writerThatReads(t, lock, time.Minute, rlock.Watchdog)
	require.Equal(t, write.Owner(), read.Owner())
	readers := []<-chan outcome{
		lockInBackground(t.Context(), lock.Read(), time.Minute),
		lockInBackground(t.Context(), lock.Read(), time.Minute),
		lockInBackground(t.Context(), d.NewReadWriteLock("page").Read(), time.Minute),
	}
	waitForParked(t, s, 2)
	eventually(t, func() bool { return rlock.Waiting(lock.Read()) == 2 }, "both wait")
	released := time.Now()
	unlock(t, write)
	var holds []*rlock.Hold
	for _, reader := range readers {
		o := result(t, reader)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(released), promptly)
		holds = append(holds, o.Hold)
	}
	require.True(t, read.Valid())
	require.Equal(t, "read", s.DoString(t, "HGET", "page", "mode"))
	_, err := d.NewReadWriteLock("page").Write().TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	_, err = lock.Write().TryLock(read.Context(), time.Second, time.Minute)
	require.ErrorIs(t, err, rlock.ErrUpgrade, "it cannot upgrade again")
	for _, hold := range append(holds, read) {
		unlock(t, hold)
	}
	requireFree(t, s, "page")
}

func TestWriterReadsAtOnceThoughOthersOfItsClientWaitToRead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	owner := rlock.WithOwner(t.Context())
	write := takeWith(owner, t, lock.Write(), time.Minute)
	reader := lockInBackground(t.Context(), lock.Read(), time.Minute)
	waitForParked(t, s, 1)
	read := acquired(t, lockInBackground(owner, lock.Read(), time.Minute))
	require.Empty(t, reader)
	unlock(t, read)
	require.True(t, write.Valid())
	require.Empty(t, reader)
	unlock(t, write)
	unlock(t, acquired(t, reader))
}

func TestWriteLeaseThatExpiresLetsReadersInThoughItsOwnerReadsOn(t *testing.T) {
	t.Parallel()
	const lease = 700 * time.Millisecond
	s := redistest.Start(t)
	c, d := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	taken := time.Now()
	write, read := writerThatReads(t, c.NewReadWriteLock("page"), lease, time.Hour)
	reader := lockInBackground(t.Context(), d.NewReadWriteLock("page").Read(), time.Minute)
	o := result(t, reader)
	require.NoError(t, o.Err)
	require.Less(t, o.At.Sub(taken), lease+promptly,
		"in Redis the read hold keeps the writer's field, too")
	require.ErrorIs(t, write.Err(), rlock.ErrLost)
	require.ErrorIs(t, write.Unlock(t.Context()), rlock.ErrLost)
	require.True(t, read.Valid())
	require.Equal(t, map[string]string{"mode": "read", read.Owner(): "1", o.Hold.Owner(): "1"},
		s.DoMap(t, "HGETALL", "page"))
	unlock(t, read)
	unlock(t, o.Hold)
	requireFree(t, s, "page")
}

func TestReadLeaseThatExpiresLeavesTheWriterItsLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	write, read := writerThatReads(t, c.NewReadWriteLock("page"), time.Minute, time.Second)
	receive(t, read.Done(), "the read lease does not end")
	require.ErrorIs(t, read.Err(), rlock.ErrLost)
	require.True(t, write.Valid())
	eventually(t, func() bool { return len(s.DoMap(t, "HGETALL", "page")) == 2 },
		"the read field is taken away")
	require.Equal(t, map[string]string{"mode": "write", write.Owner() + ":write": "1"},
		s.DoMap(t, "HGETALL", "page"))

	reader := lockInBackground(t.Context(),
		newClient(t, s, rlock.Options{}).NewReadWriteLock("page").Read(), time.Minute)
	waitForParked(t, s, 1)
	unlock(t, write)
	unlock(t, acquired(t, reader))
	requireFree(t, s, "page")
}

// stepwise is a rueidis client that holds each command with a given argument until it is told to
// send it.
type stepwise struct {
	rueidis.Client
	argument string
	arrived  chan struct{} // receives a value for each waiting command
	step     chan struct{} // lets one pass; all of them when it is closed
}

func (s *stepwise) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains(command.Commands(), s.argument) {
		s.arrived <- struct{}{}
		<-s.step
	}
	return s.Client.Do(ctx, command)
}

func TestForceUnlockEndsTheHoldsThatItFreed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	force := func(side *rlock.Lock) bool {
		held, err := side.ForceUnlock(t.Context())
		require.NoError(t, err)
		return held
	}
	write, read := writerThatReads(t, lock, time.Minute, time.Minute)
	require.False(t, force(lock.Read()), "the lock is a writer's")
	require.True(t, write.Valid())
	require.True(t, read.Valid())
	waiting := lockInBackground(t.Context(), lock.Read(), time.Minute)
	waitForParked(t, s, 1)
	require.True(t, force(lock.Write()))
	require.ErrorIs(t, write.Err(), rlock.ErrLost)
	require.ErrorIs(t, read.Err(), rlock.ErrLost)
	reader := acquired(t, waiting)

	require.False(t, force(lock.Write()), "the lock is a reader's")
	require.True(t, reader.Valid())
	writer := lockInBackground(t.Context(), lock.Write(), time.Minute)
	waitForParked(t, s, 1)
	require.True(t, force(lock.Read()))
	require.ErrorIs(t, reader.Err(), rlock.ErrLost)
	unlock(t, acquired(t, writer))
	require.False(t, force(lock.Read()))
	require.False(t, force(lock.Write()))
	requireFree(t, s, "page")
}
