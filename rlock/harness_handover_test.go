package rlock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// passing returns the kinds whose release may hand the lock over within the process.
func passing() []kind { return append(givenAway(), kindNamed("write")) }

// givenAway returns the kinds whose release may also grant it to a waiter of another process.
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

// waitersKey returns the key of the registrations of a lock's waiters.
func waitersKey(lock string) string {
	if strings.Contains(lock, "{") {
		return "holdfast_lock_waiters::" + lock
	}
	return "holdfast_lock_waiters:{" + lock + "}"
}

// registrations returns how many waiters are registered, or -1 if the server does not reply.
func registrations(s *redistest.Server, lock string) int {
	n, err := s.Call("ZCARD", waitersKey(lock))
	if err != nil {
		return -1
	}
	return int(n.(int64))
}

// registers starts the first waiter of a client for this lock, and returns when it is registered as
// the n-th.
func registers(
	t testing.TB, s *redistest.Server, n int, lock *rlock.Lock, lease time.Duration,
) <-chan outcome {
	t.Helper()
	return registersBy(t, s, n, lock.Name(), func() <-chan outcome {
		return lockInBackground(t.Context(), lock, lease)
	})
}

// registersBy is registers for a waiter that is started in another way.
func registersBy(
	t testing.TB, s *redistest.Server, n int, lock string, start func() <-chan outcome,
) <-chan outcome {
	t.Helper()
	require.Equal(t, n-1, registrations(s, lock))
	waiter := start()
	eventually(t, func() bool { return registrations(s, lock) == n },
		"registration "+strconv.Itoa(n)+" of "+lock)
	return waiter
}

// holderOf returns the only client that holds the lock according to Redis, or "".
func holderOf(t testing.TB, s *redistest.Server, lock string) (client string) {
	t.Helper()
	for field := range s.DoMap(t, "HGETALL", lock) {
		if field == "mode" {
			continue
		}
		require.Empty(t, client, "two hold the lock")
		client, _, _ = strings.Cut(field, ":")
	}
	return client
}

// lastNumber returns the number of the last acquisition of a fenced lock.
func lastNumber(t testing.TB, s *redistest.Server, lock string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.DoString(t, "GET", "redisson_lock_token:{"+lock+"}"), 10, 64)
	require.NoError(t, err)
	return n
}
