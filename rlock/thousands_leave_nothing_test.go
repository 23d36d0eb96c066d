//go:build redis

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

// lockOf returns one of many locks, which are of all kinds.
func lockOf(c *rlock.Client, i int) *rlock.Lock {
	return kinds[i%len(kinds)].lock(c, "lock "+strconv.Itoa(i))
}

// locked returns how many of them are held, or -1 if the server does not reply.
func locked(s *redistest.Server) int {
	reply, err := s.Call("KEYS", "lock *")
	if err != nil {
		return -1
	}
	return len(reply.([]any))
}

func TestThousandLocksByAThousandGoroutinesLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	redis := s.Client(t, steadyConnection)
	warm(t, newClientOn(t, redis, rlock.Options{}), "order")
	goroutines := redistest.IgnoreCurrent()

	// A machine that stalls for seconds must not make a release fail here.
	c := newClientOn(t, redis, rlock.Options{WatchdogLease: 6 * time.Second, CommandTimeout: enough})
	holds := make([]*rlock.Hold, many)
	var held, workers sync.WaitGroup
	held.Add(many)
	release := make(chan struct{})
	failures := make(chan error, 2*many)
	for i := range many {
		workers.Go(func() {
			hold, err := lockOf(c, i).Lock(t.Context(), rlock.Watchdog)
			holds[i] = hold
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
	require.Empty(t, failures)
	waitForRenewal(t, holds)
	require.Equal(t, many, locked(s), "the watchdog lost some")
	close(release)
	workers.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	keys, _ := left(s)
	require.Empty(t, keys)
	closeClient(t, c)
	require.Empty(t, s.DoStrings(t, "PUBSUB", "CHANNELS"))
	goleak.VerifyNone(t, goroutines...)
}

func TestThousandWaitersCancelledAtOnceLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	redis := s.Client(t, steadyConnection)
	other, c := newClientOn(t, redis, rlock.Options{}), newClientOn(t, redis, rlock.Options{})
	waitedFor := contests()
	holds := make(map[string]*rlock.Hold)
	heads, behind := 0, 0
	for _, k := range waitedFor {
		k.warm(t, c, "warm "+k.name)
		holds[k.name] = take(t, k.contender(other, k.name), longLease)
		if k.lonely {
			heads += many / len(waitedFor)
		} else {
			heads++
			behind += many/len(waitedFor) - 1
		}
	}
	goroutines := redistest.IgnoreCurrent()

	ctx, cancel := context.WithCancel(t.Context())
	var waiters []<-chan outcome
	for i := range many - many%len(waitedFor) {
		k := waitedFor[i%len(waitedFor)]
		waiters = append(waiters, lockInBackground(ctx, k.lock(c, k.name), longLease))
	}
	waitForGoroutines(t, "internal/waitqueue.(*Waiter[...]).Wait(", behind)
	waitForGoroutines(t, "rlock.(*attempt).park", heads)
	cancel()
	cancelled := time.Now()
	for _, waiter := range waiters {
		o := result(t, waiter)
		require.ErrorIs(t, o.Err, context.Canceled)
		require.ErrorIs(t, o.Err, rlock.ErrNotAcquired)
		require.Less(t, o.At.Sub(cancelled), promptly)
	}
	for _, key := range []string{
		"redisson_lock_queue:{fair}", "redisson_lock_timeout:{fair}",
		"holdfast_rwlock_writer:{write behind readers}",
	} {
		eventually(t, func() bool { return absent(s, key) }, "somebody is queued")
	}
	require.Less(t, time.Since(cancelled), beforeItLapses)
	for _, k := range waitedFor {
		require.Equal(t, k.contenderHash(holds[k.name].Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, holds[k.name])
		require.Zero(t, rlock.Waiting(k.lock(c, k.name)))
	}
	waitForNothingLeft(t, s)
	// Abandoned commands are cleaned up more than once, because they may come late.
	require.NoError(t, c.Close(t.Context()))
	require.Zero(t, rlock.Sessions(c))
	goleak.VerifyNone(t, append(goroutines, unoccupied)...)
}

func TestThousandAcquisitionsCancelledInFlightLeaveNothing(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{}, steadyConnection)
	for i := range kinds {
		unlock(t, take(t, lockOf(c, i), longLease))
	}
	goroutines := redistest.IgnoreCurrent()

	s.Pause(t)
	ctx, cancel := context.WithCancel(t.Context())
	attempts := make([]<-chan outcome, many)
	for i := range attempts {
		attempts[i] = lockInBackground(ctx, lockOf(c, i), longLease)
	}
	waitForGoroutines(t, "rlock.(*Lock).acquire", many)
	cancel()
	for _, attempt := range attempts {
		require.ErrorIs(t, result(t, attempt).Err, context.Canceled)
	}
	s.Resume(t)
	waitForNothingLeft(t, s)
	// Abandoned commands are cleaned up more than once, because they may come late.
	require.NoError(t, c.Close(t.Context()))
	waitForNothingLeft(t, s)
	goleak.VerifyNone(t, append(goroutines, unoccupied)...)
}
