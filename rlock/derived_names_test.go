package rlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

const owner1 = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:1"

// A lock named after a key of another lock would share that key with it.
func TestNamesThatOtherLocksDeriveAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	var names []string
	for _, name := range []string{"x", "{x}", "x{y}z"} {
		for _, derived := range lua.Related(name) {
			names = append(names, strings.ReplaceAll(derived, ":owner:", ":"+owner1+":"))
		}
		names = append(names, lua.FairChannel(name, owner1),
			lua.Prefix("redisson_unlock_latch", name)+":0123")
	}
	names = append(names, lua.ClientKey("3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11"), lua.EpochKey)
	for _, name := range names {
		if strings.HasSuffix(name, ":rwlock_timeout") {
			name += ":1"
		}
		withoutNesting(t, func(t *testing.T, k kind) {
			_, err := k.lock(c, name).TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrInvalid, name)
			require.ErrorContains(t, err, "use another name")
		})
	}
	require.Empty(t, s.Keys(t), "nothing was sent")

	mapped := newClient(t, s, rlock.Options{NameMapper: rlock.Prefix("holdfast_lock_turn:")})
	_, err := mapped.NewLock("{x}").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid, "what counts is the name in Redis")

	for _, name := range []string{"redisson_lock_queue", "redisson_lock_queue:x", "holdfast_lock_turn",
		"app:redisson_lock_queue:{x}", "{job}:rwlock_timeout:1", "{x}:" + owner1, "holdfast_job:{x}"} {
		unlock(t, take(t, c.NewLock(name), longLease))
	}
}
