package rlock_test

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The names below are short for what locktest has for the tests of all locks.

const patience = locktest.Patience

type (
	outcome = locktest.Outcome
	process = locktest.Process
)

var (
	closeClient      = locktest.CloseClient
	take             = locktest.Take
	takeWith         = locktest.TakeWith
	unlock           = locktest.Unlock
	inBackground     = locktest.InBackground
	lockInBackground = locktest.LockInBackground
	result           = locktest.Result
	acquired         = locktest.Acquired
	eventually       = locktest.Eventually
	within           = locktest.Within
	bestOf           = locktest.BestOf
	startProcess     = locktest.StartProcess
)

// receive is locktest.Receive.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	return locktest.Receive(t, from, otherwise)
}

// requireRefusedAfter requires that somebody who waits does not get the lock. A machine that is too busy to answer in that time
// is asked again.
func requireRefusedAfter(t testing.TB, wait time.Duration, l *rlock.Lock) {
	t.Helper()
	var err error
	eventually(t, func() bool {
		_, err = l.TryLock(t.Context(), wait, time.Minute)
		return !errors.Is(err, rlock.ErrOutcomeUnknown)
	}, "no answer")
	require.ErrorIs(t, err, rlock.ErrNotAcquired, l.Name())
}

// requireKept requires that holds stay valid for a while.
func requireKept(t testing.TB, holds []*rlock.Hold, length time.Duration, otherwise string) {
	t.Helper()
	over := time.After(length)
	look := time.NewTicker(length / 100)
	defer look.Stop()
	for {
		for _, hold := range holds {
			require.True(t, hold.Valid(), "%s: %s: %v; its deadline is in %v", otherwise, hold.Name(), hold.Err(), time.Until(hold.Deadline()))
		}
		select {
		case <-over:
			return
		case <-look.C:
		}
	}
}

// newClient returns a client of the server with connections of its own, both closed in clean-up. It logs nothing unless
// options say so.
func newClient(t testing.TB, s *redistest.Server, options rlock.Options, mutators ...func(*rueidis.ClientOption)) *rlock.Client {
	t.Helper()
	return newClientOn(t, s.Client(t, mutators...), options)
}

// newClientOn returns a client on the given connections, closed in clean-up. Close is given time enough to be called
// a failure if it hangs.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	switch redis.(type) {
	case *gated, *stepwise: // these let nobody leave, whatever becomes of the context
		rlock.Detach(c)
	}
	return c
}

// channelOf is the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// subscribers is how many connections listen on the channel of a lock. -1 if the server does not say.
func subscribers(s *redistest.Server, lock string) int { return listening(s, "NUMSUB", lock) }

// listening is subscribers for channels of either kind, which numsub tells: NUMSUB or SHARDNUMSUB.
func listening(s *redistest.Server, numsub, lock string) int {
	return subscribed(s, numsub, channelOf(lock))
}

// subscribed is listening for any channel.
func subscribed(s *redistest.Server, numsub, channel string) int {
	reply, err := s.Call("PUBSUB", numsub, channel)
	if err != nil {
		return -1
	}
	n, _ := reply.([]any)[1].(int64)
	return int(n)
}

// awaitListeners waits until exactly n connections listen on the channel of a lock.
func awaitListeners(t testing.TB, s *redistest.Server, lock string, n int) {
	t.Helper()
	eventually(t, func() bool { return subscribers(s, lock) == n }, strconv.Itoa(n)+" listeners on "+channelOf(lock))
}
