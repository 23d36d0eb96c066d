package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func init() { processes["waiting writer"] = waitToWrite }

// waitToWrite waits for the write lock "page" of a server, until it is killed.
func waitToWrite(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	c, err := rlock.New(redis, rlock.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		cancel()
	}()
	_, err = c.NewReadWriteLock("page").Write().Lock(ctx, time.Minute)
	fmt.Println(err)
	return c.Close(context.Background())
}

const ownKeys = "holdfast_rwlock_"

// waitForWriter waits until readers of the lock "page" step back for a writer.
func waitForWriter(t testing.TB, s *redistest.Server) {
	t.Helper()
	eventually(t, func() bool { return exists(s, ownKeys+"writer:{page}") }, "no writer waits")
}

// readersBehindAWriter returns a lock that one reads, another waits to write, and two more, of two
// clients, wait to read.
func readersBehindAWriter(
	t *testing.T, s *redistest.Server, wait func(),
) (reader *rlock.Hold, behind []<-chan outcome) {
	t.Helper()
	c, d := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	reader = take(t, c.NewReadWriteLock("page").Read(), 10*time.Minute)
	wait()
	waitForWriter(t, s)
	for _, client := range []*rlock.Client{c, d} {
		behind = append(behind,
			lockInBackground(t.Context(), client.NewReadWriteLock("page").Read(), time.Minute))
	}
	waitForParked(t, s, 3)
	require.Empty(t, behind[0])
	require.Empty(t, behind[1])
	return reader, behind
}

func TestNewReadersComeAfterAWriterThatWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	lock := c.NewReadWriteLock("page")
	var writer <-chan outcome
	reader, behind := readersBehindAWriter(t, s,
		func() { writer = lockInBackground(t.Context(), lock.Write(), time.Minute) })

	_, err := lock.Read().TryLock(t.Context(), rlock.NoWait, time.Minute)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.True(t, held.Next)
	require.True(t, strings.HasPrefix(held.Owner, c.ID()+":"), held.Owner)
	require.NotContains(t, held.Owner, "write")
	require.ErrorContains(t, err, "comes first")

	unlock(t, reader)
	write := acquired(t, writer)
	require.Equal(t, write.Owner(), held.Owner)
	require.Empty(t, behind[0])
	require.Empty(t, behind[1])
	unlock(t, write)
	for _, reader := range behind {
		unlock(t, acquired(t, reader))
	}
}

func TestNestedReadIsNotHeldBackByAWaitingWriter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	outer := take(t, lock.Read(), time.Minute)
	writer := lockInBackground(t.Context(),
		newClient(t, s, rlock.Options{}).NewReadWriteLock("page").Write(), time.Minute)
	waitForWriter(t, s)
	within(t, longWait/2, func() {
		nested, err := lock.Read().Lock(outer.Context(), time.Minute)
		require.NoError(t, err)
		unlock(t, nested)
	})
	require.Empty(t, writer)
	unlock(t, outer)
	unlock(t, acquired(t, writer))
}

func TestReadersPassAWriterThatHasHeldThemBackForLong(t *testing.T) {
	t.Parallel()
	const bound = time.Second
	s := redistest.Start(t)
	options := rlock.Options{WatchdogLease: bound}
	lock := newClient(t, s, options).NewReadWriteLock("page")
	reader := take(t, lock.Read(), 10*time.Minute)
	began := time.Now()
	writer := lockInBackground(t.Context(),
		newClient(t, s, options).NewReadWriteLock("page").Write(), time.Minute)
	waitForWriter(t, s)
	o := result(t, lockInBackground(t.Context(), lock.Read(), time.Minute))
	require.NoError(t, o.Err)
	require.Greater(t, o.At.Sub(began), bound/2)
	require.Less(t, o.At.Sub(began), bound+promptly)
	require.Empty(t, writer)
	unlock(t, o.Hold)
	unlock(t, reader)
	unlock(t, acquired(t, writer))
}

// Only precedence needs GET, so a server without one GET has none of its keys.
func TestNothingIsWrittenBesideTheLockWithoutPreference(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	options := rlock.Options{WriterPreference: rlock.PreferNobody}
	lock := newClient(t, s, options).NewReadWriteLock("page")
	far := newClient(t, s, options).NewReadWriteLock("page")
	reader := take(t, lock.Read(), time.Minute)
	writer := lockInBackground(t.Context(), far.Write(), time.Minute)
	waitForParked(t, s, 1)
	_, err := far.Write().TryLock(t.Context(), 20*time.Millisecond, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, take(t, lock.Read(), time.Minute)) // no reader steps back
	unlock(t, reader)
	write := acquired(t, writer)
	behind := lockInBackground(t.Context(), lock.Read(), time.Minute)
	eventually(t, func() bool { return rlock.Refusals(lock.Read()) > 0 }, "no reader waits")
	unlock(t, write)
	unlock(t, acquired(t, behind))
	require.Zero(t, s.CommandStats(t)["get"])
	require.Empty(t, s.Keys(t))
}

func TestAttemptWithoutWaitHoldsNoReaderBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	far := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	reader := take(t, lock.Read(), time.Minute)
	_, err := far.Write().TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, take(t, lock.Read(), time.Minute))
	unlock(t, reader)
	write := take(t, far.Write(), time.Minute)
	_, err = lock.Read().TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, write)
	require.Empty(t, s.DoStrings(t, "KEYS", ownKeys+"*"))
	unlock(t, take(t, lock.Write(), time.Minute)) // no turn of readers begins
}

// Losing what is known of the waiters costs a writer its precedence until it asks again, but no one
// the lock.
func TestLockSurvivesTheLossOfItsOwnKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var writer <-chan outcome
	c := newClient(t, s, rlock.Options{})
	reader, behind := readersBehindAWriter(t, s, func() {
		writer = lockInBackground(t.Context(), c.NewReadWriteLock("page").Write(), time.Minute)
	})
	eventually(t, func() bool {
		return rlock.Refusals(c.NewReadWriteLock("page").Write()) == 2
	}, "the writer has its reply")
	for _, key := range s.DoStrings(t, "KEYS", ownKeys+"*") {
		s.Do(t, "DEL", key)
	}
	unlock(t, take(t, c.NewReadWriteLock("page").Read(), time.Minute))
	unlock(t, reader)
	var ends []<-chan error
	for _, waiting := range append(behind, writer) {
		ends = append(ends, passedOn(waiting)) // in whatever order they acquire it
	}
	for _, end := range ends {
		require.NoError(t, receive(t, end, "a waiter waits for ever"))
	}
	waitUntilFree(t, s, "page")
}

// passedOn releases what is acquired, and sends the error of either.
func passedOn(waiting <-chan outcome) <-chan error {
	done := make(chan error, 1)
	go func() {
		o := <-waiting
		if o.Err == nil {
			o.Err = o.Hold.Unlock(context.Background())
		}
		done <- o.Err
	}()
	return done
}
