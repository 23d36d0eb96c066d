//go:build redis

package pubsub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// A server that cannot save refuses PING. rueidis panics when that comes right behind an
// UNSUBSCRIBE.
func TestChannelsAreGivenUpOnAServerThatCannotSave(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		// No file can have this name: a snapshot is written but cannot be renamed to it. Without an
		// append-only file the server would not start, because it could not look for a snapshot
		// either.
		s := redistest.Start(t, redistest.WithAppendOnly(),
			redistest.WithArgs("--dbfilename", strings.Repeat("x", 256), "--save", "3600", "1"))
		h := newHub(t, s, mutate)
		kept := h.Subscribe(pubsub.Topic{Channel: "kept"})
		left := h.Subscribe(pubsub.Topic{Channel: "left"})
		woken(t, kept, 5*time.Second)
		woken(t, left, 5*time.Second)
		s.Do(t, "BGSAVE")
		require.Eventually(t, func() bool {
			_, err := s.Call("PING")
			return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
		}, 5*time.Second, 5*time.Millisecond)

		left.Close()
		require.Eventually(t, func() bool { return numSub(s, "left") == 0 }, 5*time.Second,
			5*time.Millisecond)
		// The connection was closed, so the subscribers that stay are subscribed again and wake.
		woken(t, kept, 5*time.Second)
		s.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "kept", "0"))
		woken(t, kept, 5*time.Second)
		s.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		h.Close()
		require.Eventually(t, func() bool { return numSub(s, "kept") == 0 }, 5*time.Second,
			5*time.Millisecond)
	})
}

// numSub returns how many connections listen on a channel, or -1 if the server does not reply.
func numSub(s *redistest.Server, channel string) int64 {
	reply, err := s.Call("PUBSUB", "NUMSUB", channel)
	if err != nil {
		return -1
	}
	return reply.([]any)[1].(int64)
}
