package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

const many = 1000

func TestThousandLocksByAThousandGoroutinesLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	redis := s.Client(t, steadyConnection)
	warm(t, newClientOn(t, redis, rlock.Options{}), "order")
	goroutines := redistest.IgnoreCurrent()

	c := newClientOn(t, redis, rlock.Options{WatchdogLease: 900 * time.Millisecond})
	var held, workers sync.WaitGroup
	held.Add(many)
	release := make(chan struct{})
	failures := make(chan error, 2*many)
	for i := range many {
		workers.Go(func() {
			hold, err := c.NewLock("lock "+strconv.Itoa(i)).Lock(t.Context(), rlock.Watchdog)
			held.Done()
			if err != nil {
				failures <- err
				return
			}
			<-release
			if err := hold.Unlock(t.Context()); err != nil {
				failures <- err
			}
		})
	}
	held.Wait()
	require.EqualValues(t, many, s.DoInt(t, "DBSIZE"))
	require.Never(t, func() bool { keys, err := s.Call("DBSIZE"); return err == nil && keys != int64(many) },
		1200*time.Millisecond, 50*time.Millisecond, "the watchdog has let some go")
	close(release)
	workers.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Zero(t, s.DoInt(t, "DBSIZE"))
	closeClient(t, c)
	require.Empty(t, s.DoStrings(t, "PUBSUB", "CHANNELS"))
	goleak.VerifyNone(t, goroutines...)
}

func TestThousandWaitersCancelledAtOnceLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	redis := s.Client(t, steadyConnection)
	other := newClientOn(t, redis, rlock.Options{})
	hold := take(t, other.NewLock("order"), longLease)
	c := newClientOn(t, redis, rlock.Options{})
	unlock(t, take(t, c.NewLock("warm"), longLease))
	goroutines := redistest.IgnoreCurrent()

	ctx, cancel := context.WithCancel(t.Context())
	waiters := make([]<-chan outcome, many)
	for i := range waiters {
		waiters[i] = lockInBackground(ctx, c.NewLock("order"), longLease)
	}
	awaitGoroutines(t, "(*spot).advance", many-1)
	awaitListeners(t, s, "order", 1)
	cancel()
	cancelled := time.Now()
	for _, waiter := range waiters {
		o := result(t, waiter)
		require.ErrorIs(t, o.err, context.Canceled)
		require.ErrorIs(t, o.err, rlock.ErrNotAcquired)
		require.Less(t, o.at.Sub(cancelled), 2*promptly)
	}
	require.Equal(t, map[string]string{hold.Owner(): "1"}, counts(t, s))
	unlock(t, hold)
	awaitEmpty(t, s)
	require.Zero(t, rlock.Waiting(c.NewLock("order")))
	require.Zero(t, rlock.Seats(c))
	goleak.VerifyNone(t, goroutines...)
}

func TestThousandAcquisitionsCancelledInFlightLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{}, steadyConnection)
	warm(t, c, "order")
	goroutines := redistest.IgnoreCurrent()

	s.Pause(t)
	ctx, cancel := context.WithCancel(t.Context())
	attempts := make([]<-chan outcome, many)
	for i := range attempts {
		attempts[i] = lockInBackground(ctx, c.NewLock("lock "+strconv.Itoa(i)), longLease)
	}
	awaitGoroutines(t, "(*attempt).run", many)
	cancel()
	for _, attempt := range attempts {
		require.ErrorIs(t, result(t, attempt).err, context.Canceled)
	}
	s.Resume(t)
	awaitEmpty(t, s)
	goleak.VerifyNone(t, goroutines...)
}
