package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

const (
	fairQueue  = "redisson_lock_queue:{job}"
	fairScores = "redisson_lock_timeout:{job}"
	fairTurn   = "holdfast_lock_turn:{job}"
)

// waitForFairQueue waits until n owners are queued, and returns them, head first.
func waitForFairQueue(t *testing.T, s *redistest.Server, n int) []string {
	t.Helper()
	eventually(t, func() bool { return s.DoInt(t, "LLEN", fairQueue) == int64(n) },
		strconv.Itoa(n)+" waiters in the queue")
	return s.DoStrings(t, "LRANGE", fairQueue, "0", "-1")
}

// waitInTurn has one goroutine wait for each of the locks, in that order. It returns when all are
// queued and listen.
func waitInTurn(t *testing.T, s *redistest.Server, at ...*rlock.Lock) []fairWaiter {
	t.Helper()
	before := int(s.DoInt(t, "LLEN", fairQueue))
	waiters := make([]fairWaiter, len(at))
	for i, lock := range at {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		waiters[i] = fairWaiter{lockInBackground(ctx, lock, longLease), cancel}
		owner := waitForFairQueue(t, s, before+i+1)[before+i]
		eventually(t, func() bool { return fairListeners(t, s, owner) == 1 }, "the waiter listens")
	}
	return waiters
}

// fairListeners returns how many connections listen for an owner that waits for the lock "job".
func fairListeners(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	return s.Do(t, "PUBSUB", "NUMSUB", channelOf("job")+":"+owner).([]any)[1].(int64)
}

// requireNothingFairLeft waits until nothing is left in Redis of the lock "job" and its waiters.
func requireNothingFairLeft(t *testing.T, s *redistest.Server) {
	t.Helper()
	eventually(t, func() bool { return s.DoInt(t, "EXISTS", "job", fairQueue, fairScores) == 0 },
		"something is left")
}

// fairScore returns the score of a queued owner.
func fairScore(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.DoString(t, "ZSCORE", fairScores, owner), 10, 64)
	require.NoError(t, err)
	return n
}

// plantHead queues an owner as Redisson would, with a window of 5 min.
func plantHead(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	s.Do(t, "RPUSH", fairQueue, owner)
	s.Do(t, "ZADD", fairScores, strconv.FormatInt(time.Now().Add(5*time.Minute).UnixMilli(), 10),
		owner)
}
