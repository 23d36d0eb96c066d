//go:build redis

package pubsub_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// A server that is busy with a script refuses UNSUBSCRIBE, and the PING right behind it. rueidis
// takes the first refusal for the reply to the PING, and panics at the second.
func TestChannelsAreGivenUpOnAServerThatIsBusy(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		s := redistest.Start(t, redistest.WithArgs("--lua-time-limit", "1"))
		var dials atomic.Int32
		h := newHub(t, s, func(o *rueidis.ClientOption) {
			mutate(o)
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config,
			) (net.Conn, error) {
				dials.Add(1)
				return d.DialContext(ctx, "tcp", addr)
			}
		})
		kept := h.Subscribe(pubsub.Topic{Channel: "kept"})
		left := h.Subscribe(pubsub.Topic{Channel: "left"})
		woken(t, kept, 5*time.Second)
		woken(t, left, 5*time.Second)
		ended := make(chan error, 1)
		go func() {
			_, err := s.Call("EVAL", "while true do end", "0")
			ended <- err
		}()
		require.Eventually(t, func() bool {
			_, err := s.Call("PING")
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		}, 5*time.Second, 5*time.Millisecond)

		before := dials.Load()
		left.Close()
		require.Eventually(t, func() bool { return dials.Load() > before }, 5*time.Second,
			5*time.Millisecond, "the connection was not given up")
		s.Do(t, "SCRIPT", "KILL")
		require.Error(t, <-ended)
		woken(t, kept, 5*time.Second)
		require.Eventually(t, func() bool { return numSub(s, "left") == 0 }, 5*time.Second,
			5*time.Millisecond)
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "kept", "0"))
		woken(t, kept, 5*time.Second)
	})
}
