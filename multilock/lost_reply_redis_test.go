//go:build redis

package multilock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func TestReleaseWhoseRepliesAreAllLostIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second // for all parts together
	s, lock, p := proxied(t, rlock.Options{CommandTimeout: limit})
	hold := take(t, lock, longLease)
	p.CutReply(script(t, "batch_release.lua"), 1000)
	p.CutReply(script(t, "release.lua"), 1000) // by which each is released alone
	within(t, limit+promptly, func() {
		err := hold.Unlock(t.Context())
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		for _, name := range []string{"a", "b", "c"} {
			require.ErrorContains(t, err, `lock "`+name+`"`)
		}
	})
	requireFree(t, s)
}

func TestAcquireWhoseReplyComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	s, lock, p := proxied(t, rlock.Options{})
	p.HoldReplies()
	attempt := lockInBackground(t.Context(), lock, lease)
	eventually(t, func() bool { return len(left(t, s)) == 3 }, "executed")
	<-time.After(lease)
	answered := time.Now()
	p.Pass()
	o := result(t, attempt)
	require.NoError(t, o.Err)
	requireLevels(t, s, "1") // without the level whose lease ran out
	require.Greater(t, o.Hold.Deadline().Sub(answered), lease/2,
		"the deadline counts from the first try")
	unlock(t, o.Hold)
	waitUntilFree(t, s)
}

// A server that wants more replicas than it has refuses each write of the script, but not the
// script. All parts are asked for again, as a single lock would be.
func TestReleaseThatIsRefusedForNowIsRetried(t *testing.T) {
	t.Parallel()
	s, lock, _ := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	before := s.CommandStats(t)["evalsha"]
	released := make(chan error, 1)
	go func() { released <- hold.Unlock(context.Background()) }()
	eventually(t, func() bool { return s.CommandStats(t)["evalsha"] >= before+3 }, "it is retried")
	require.Len(t, left(t, s), 3)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	require.NoError(t, receive(t, released, "the release has not ended"))
	requireFree(t, s)
}

func TestReleaseThatIsRefusedForTooLongIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	s, lock, _ := proxied(t, rlock.Options{CommandTimeout: 2 * time.Second})
	hold := take(t, lock, longLease)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	err := hold.Unlock(t.Context())
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.Equal(t, 3, strings.Count(err.Error(), "NOREPLICAS"), "each part says why: %v", err)
	require.Len(t, left(t, s), 3)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	waitUntilFree(t, s)
}
