package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("order:42")
	s.Do(t, "HSET", "order:42", "another:7", "1")
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.EqualError(
		t,
		err,
		`holdfast: lock "order:42": not acquired: held by another:7, and never expires by itself; `+
			`find out who wrote it, and if it is a lock, free it with "holdfast unlock"`,
	)

	s.Do(t, "PEXPIRE", "order:42", "30000")
	_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.Regexp(
		t,
		`^holdfast: lock "order:42": not acquired: held by another:7 for another [23]\d(\.\d+)?s; `+
			`wait longer or shorten its lease$`,
		err.Error(),
	)

	require.EqualError(
		t,
		lock.Unlock(t.Context()),
		`holdfast: lock "order:42": lock not held: the context has no owner: `+
			`pass the hold's context or one of WithOwner, or call Unlock on the hold`,
	)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = lock.Lock(ctx, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Regexp(
		t,
		`not acquired, context deadline exceeded: held by another:7 for another `,
		err.Error(),
	)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "another:7", held.Owner)
}

// Four different results: not acquired, context ended, refused by the server, outcome unknown.
func TestErrorsOfARefusalDifferFromThoseOfAWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	s.Do(t, "SET", "lock", "not a lock")
	_, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
	var refusal *rlock.ServerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "WRONGTYPE", refusal.Code)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.Equal(t, "not a lock", s.DoString(t, "GET", "lock"))
}

func TestHeldErrorWithoutReplyNamesNoHolder(t *testing.T) {
	t.Parallel()
	err := &rlock.HeldError{Lock: "lock"}
	require.EqualError(t, err,
		"not acquired: the wait ended before Redis said who holds it; wait longer")
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}

func TestLostErrorIsNotWrappedTwice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := take(t, newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	s.Do(t, "DEL", "lock")
	require.EqualError(
		t,
		hold.Unlock(t.Context()),
		`holdfast: lock "lock" lost: it is no longer this owner's in Redis: `+
			`it was force-unlocked, deleted, evicted, or lost in a failover or restart`,
	)
}
