package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

const (
	uuidV4  = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	ownerRE = `^` + uuidV4 + `:[1-9][0-9]*$`
)

func TestLockIsAHashUnderItsNameAndItsReleaseIsPublished(t *testing.T) {
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	require.Regexp(t, `^`+uuidV4+`$`, client.ID())
	for name, channel := range map[string]string{
		"order:42":    "redisson_lock__channel:{order:42}",
		"{tag}rest":   "redisson_lock__channel:{tag}rest",
		"a{b":         "redisson_lock__channel:a{b",
		"foo}bar":     "redisson_lock__channel:{foo}bar}",
		"x{}y":        "redisson_lock__channel:x{}y",
		"Schlüssel 錠": "redisson_lock__channel:{Schlüssel 錠}",
	} {
		t.Run(name, func(t *testing.T) {
			plain := listen(t, s, channel)
			hold := take(t, client.NewLock(name), 30*time.Second)
			require.Equal(t, "hash", s.DoString(t, "TYPE", name))
			fields := s.DoMap(t, "HGETALL", name)
			require.Equal(t, map[string]string{hold.Owner(): "1"}, fields)
			require.Regexp(t, ownerRE, hold.Owner())
			ttl := s.DoInt(t, "PTTL", name)
			require.Greater(t, ttl, int64(20_000))
			require.LessOrEqual(t, ttl, int64(30_000))

			inner := takeWith(hold.Context(), t, client.NewLock(name), rlock.Watchdog)
			unlock(t, inner) // publishes nothing: the next message must come from the last release
			require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
			before := s.CommandStats(t)["publish"]
			unlock(t, hold)
			require.Equal(t, []string{"message", channel, "0"}, plain.next(t))
			require.Equal(t, before+1, s.CommandStats(t)["publish"])
			require.Empty(t, s.Keys(t))
		})
	}
}

func TestForceUnlockIsPublished(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	plain := listen(t, s, channelOf("lock"))
	take(t, newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	held, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, []string{"message", channelOf("lock"), "0"}, plain.next(t))
	held, err = lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.False(t, held)
}
