package rlock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// passing are the kinds of locks whose release may give the lock to the next one of the same process.
func passing() []kind { return append(givenAway(), kindNamed("write")) }

// givenAway are those whose release may give it to a waiter of another process as well.
func givenAway() []kind { return []kind{kindNamed("reentrant"), kindNamed("fenced")} }

// onEach runs a test in parallel for each of some kinds.
func onEach(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// waitersKey is where those who may be given a lock have their places.
func waitersKey(lock string) string {
	if strings.Contains(lock, "{") {
		return "holdfast_lock_waiters::" + lock
	}
	return "holdfast_lock_waiters:{" + lock + "}"
}

// places is how many owners have one; -1 if the server does not say.
func places(s *redistest.Server, lock string) int {
	n, err := s.Call("ZCARD", waitersKey(lock))
	if err != nil {
		return -1
	}
	return int(n.(int64))
}

// enlists starts a waiter of a client that has none for this lock yet, and returns when it has the n-th place.
func enlists(t testing.TB, s *redistest.Server, n int, lock *rlock.Lock, lease time.Duration) <-chan outcome {
	t.Helper()
	return enlistsBy(t, s, n, lock.Name(), func() <-chan outcome { return lockInBackground(t.Context(), lock, lease) })
}

// enlistsBy is enlists for a waiter that is started in some other way.
func enlistsBy(t testing.TB, s *redistest.Server, n int, lock string, start func() <-chan outcome) <-chan outcome {
	t.Helper()
	require.Equal(t, n-1, places(s, lock))
	waiter := start()
	eventually(t, func() bool { return places(s, lock) == n }, "place "+strconv.Itoa(n)+" of "+lock)
	return waiter
}

// holderOf is the client that Redis says has the lock, which must be one alone; "" if nobody has.
func holderOf(t testing.TB, s *redistest.Server, lock string) (client string) {
	t.Helper()
	for field := range s.DoMap(t, "HGETALL", lock) {
		if field == "mode" {
			continue
		}
		require.Empty(t, client, "two have the lock")
		client, _, _ = strings.Cut(field, ":")
	}
	return client
}

// lastNumber is that of the last acquisition of a fenced lock.
func lastNumber(t testing.TB, s *redistest.Server, lock string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.DoString(t, "GET", "redisson_lock_token:{"+lock+"}"), 10, 64)
	require.NoError(t, err)
	return n
}

// departure is a way in which a waiter leaves without the lock.
type departure struct {
	name  string
	begin func(lock *rlock.Lock, lease time.Duration) (waiter <-chan outcome, leave func())
	err   error
}

// departures are all of them. What they leave must be called before the test ends.
func departures(t testing.TB, c *rlock.Client) []departure {
	return []departure{
		{"is cancelled", func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
			ctx, cancel := context.WithCancel(t.Context())
			return lockInBackground(ctx, lock, lease), cancel
		}, context.Canceled},
		{"has waited long enough", func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
			return inBackground(func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), 2*time.Second, lease) }), func() {}
		}, rlock.ErrNotAcquired},
		{"closes its client", func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
			return lockInBackground(t.Context(), lock, lease), func() { go func() { _ = c.Close(context.Background()) }() }
		}, rlock.ErrClosed},
	}
}
