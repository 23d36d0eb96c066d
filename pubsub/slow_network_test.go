package pubsub

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// rate is how many bytes per second the slow network carries, in each direction.
const rate = 60_000

// took returns how long the slow network takes for a request and its replies. Its server confirms
// each name by itself.
func took(r *request) time.Duration {
	bytes := 0
	for _, group := range r.groups {
		for _, name := range group {
			bytes += len(name) + len("*3\r\n$9\r\nsubscribe\r\n$100\r\n\r\n:1000\r\n")
		}
	}
	return time.Duration(bytes) * time.Second / rate
}

func TestManyChannelsAreSubscribedOverASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const channels = 4000
		h, f, lines := newFake(t, Options{Paired: func(channel string) []string {
			return []string{"holdfast_lock_waiter:" + channel + ":5d0b1c2e-66aa-4f2e-9f0d-0d0b6e2b3a11"}
		}})
		for i := range channels {
			h.Subscribe(Topic{Channel: fmt.Sprintf("redisson_lock__channel:{shop:order:%06d}", i)})
		}
		began, whole := time.Now(), time.Duration(0)
		for confirmed := 0; confirmed < channels; {
			r := f.next(t, "subscribe")
			takes := took(r)
			if takes > replyTimeout {
				time.Sleep(replyTimeout)
				r.reply <- result{err: context.DeadlineExceeded}
				require.Less(t, time.Since(began), time.Minute, "never confirmed")
				continue
			}
			time.Sleep(takes)
			whole += takes
			r.accept()
			confirmed += len(r.channels)
		}
		require.Greater(t, whole, replyTimeout, "the network is not slow enough for this test")
		require.Empty(t, lines.With(""))
	})
}
