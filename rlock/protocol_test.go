package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

const uuidV4 = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestLockIsAHashUnderItsNameAndItsReleaseIsPublished(t *testing.T) {
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	require.Regexp(t, `^`+uuidV4+`$`, client.ID())
	for name, channel := range map[string]string{
		"Schlüssel:錠": "redisson_lock__channel:{Schlüssel:錠}",
		"{tag}rest":   "redisson_lock__channel:{tag}rest",
		"foo}bar":     "redisson_lock__channel:{foo}bar}",
		"x{}y":        "redisson_lock__channel:x{}y",
	} {
		t.Run(name, func(t *testing.T) {
			plain, lock := listen(t, s, channel), client.NewLock(name)
			hold := take(t, lock, rlock.Lease(30*time.Second))
			require.Equal(t, "hash", s.DoString(t, "TYPE", name))
			require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
			require.Regexp(t, `^`+uuidV4+`:[1-9][0-9]*$`, hold.Owner())
			require.InDelta(t, 25_000, s.DoInt(t, "PTTL", name), 5000)

			inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
			unlock(t, inner) // publishes nothing: the next message must come from the last release
			require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
			before := s.CommandStats(t)["publish"]
			unlock(t, hold)
			require.Equal(t, []string{"message", channel, "0"}, plain.next(t))
			require.Equal(t, before+1, s.CommandStats(t)["publish"])

			take(t, lock, rlock.Watchdog)
			held, err := lock.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
			require.Equal(t, []string{"message", channel, "0"}, plain.next(t))
			require.Empty(t, s.Keys(t))
		})
	}
}

// Redisson's ExpiredObjectListener hears of a key that expires, and not of one that is deleted.
func TestLeaseThatRunsOutIsLeftToExpire(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, rlock.Lease(time.Minute))
		time.Sleep(time.Hour)
		require.ErrorIs(t, hold.Err(), rlock.ErrExpired)
		closeClient(t, b.client) // nothing is sent any more
		require.Empty(t, b.called(k.release))
		require.Empty(t, b.called(k.forceUnlock))
	})
}
