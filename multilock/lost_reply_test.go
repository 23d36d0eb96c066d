package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func requireLevels(t testing.TB, s *redistest.Server, want string) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, []string{want}, levels(t, s, name), name)
	}
}

func TestAttemptWithoutWaitWhoseReplyIsLostIsUndone(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	cut := p.CutReply(script(t, "batch_acquire.lua"), 1000) // also when it is sent again
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	cut.End()
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.Greater(t, cut.Done(), 1)
	waitUntilFree(t, s)
}

func TestAttemptWithoutWaitWhoseReplyIsLostOnceIsSentAgain(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	cut := p.CutReply(script(t, "batch_acquire.lua"), 1)
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.NoError(t, err)
	require.Equal(t, 1, cut.Done())
	requireLevels(t, s, "1") // though it was executed twice
	unlock(t, hold)
	requireFree(t, s)
}

func TestWaitingAcquireRetriesAfterALostReply(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	cut := p.CutReply(script(t, "batch_acquire.lua"), 2)
	hold, err := lock.TryLock(t.Context(), longWait, longLease)
	require.NoError(t, err)
	require.Equal(t, 2, cut.Done())
	requireLevels(t, s, "1")
	unlock(t, hold)
	waitUntilFree(t, s)
}

func TestLostReplyOfANestedAcquireTakesNothingFromTheOuterLevel(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	outer := take(t, lock, longLease)
	cut := p.CutReply(script(t, "batch_acquire.lua"), 1000) // also when it is sent again
	_, err := lock.TryLock(outer.Context(), rlock.NoWait, longLease)
	cut.End()
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.Greater(t, cut.Done(), 1)
	require.True(t, outer.Valid())
	p.CutReply(script(t, "batch_acquire.lua"), 1)
	inner, err := lock.TryLock(outer.Context(), longWait, longLease)
	require.NoError(t, err)
	requireLevels(t, s, "2")
	unlock(t, inner)
	requireLevels(t, s, "1")
	unlock(t, outer)
	requireFree(t, s)
}

func TestReleaseWhoseReplyIsLostIsARelease(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	inner := takeWith(hold.Context(), t, lock, longLease)
	for level, h := range []*rlock.Hold{inner, hold} {
		together := p.CutReply(script(t, "batch_release.lua"), 1)
		alone := p.CutReply(script(t, []string{"release_only.lua", "release.lua"}[level]), 2)
		unlock(t, h)
		require.Equal(t, 1, together.Done())
		require.Equal(t, 2, alone.Done())
		if level == 0 {
			requireLevels(t, s, "1")
			require.True(t, hold.Valid())
		}
	}
	requireFree(t, s)
}

func TestReleaseOnAnUnreachableServerIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{CommandTimeout: 500 * time.Millisecond})
	hold := take(t, lock, longLease)
	p.Refuse()
	p.Reset()
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	require.Len(t, left(t, s), 3)
	require.NoError(t, p.Accept())
	waitUntilFree(t, s)
}

func TestReleaseWithoutReplyIsFinishedInTheBackground(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond
	s, lock, p := proxied(t, rlock.Options{CommandTimeout: limit})
	hold := take(t, lock, longLease)
	p.BlackHole()
	within(t, limit+promptly, func() {
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	})
	require.Len(t, left(t, s), 3)
	p.Reset() // loses what was held back
	p.Pass()
	waitUntilFree(t, s)
}

func TestAcquireWhoseCallerLeftIsReleased(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{
		"when its reply comes late": false, "when its reply is lost": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, lock, p := proxied(t, rlock.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			p.HoldReplies()
			attempt := lockInBackground(ctx, lock, longLease)
			eventually(t, func() bool { return len(left(t, s)) == 3 }, "executed")
			cancel()
			o := result(t, attempt)
			require.ErrorIs(t, o.Err, context.Canceled)
			if lose {
				p.Reset()
			}
			p.Pass()
			waitUntilFree(t, s)
		})
	}
}

// Only one part is refused, for good. Unlock reports it, and the others are free.
func TestPartThatCannotBeReleasedDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	s, lock, _ := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	s.Do(t, "DEL", "b")
	s.Do(t, "SET", "b", "a page")
	err := hold.Unlock(t.Context())
	require.ErrorContains(t, err, "WRONGTYPE")
	require.ErrorContains(t, err, `lock "b"`)
	require.NotContains(t, err.Error(), `lock "a"`)
	require.Equal(t, []string{"b"}, left(t, s))
}
