package pubsub

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestRouteThatFailsIsRetriedAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newFake(t, Options{})
		f.routing = errors.New("no master is known")
		s := h.Subscribe(Topic{Channel: "c"})
		time.Sleep(time.Minute) // by the bubble's clock
		synctest.Wait()
		f.set(func() {
			require.Greater(t, len(f.refresh), 60)
			require.Less(t, len(f.refresh), 200)
			f.routing = nil
		})
		require.Len(t, lines.With("no master is known"), 1)
		f.next(t, "subscribe").accept()
		take(t, s)
	})
}

func TestRouteThatHangsIsGivenUpAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		hangs := true
		h.options.Route = func(
			ctx context.Context, channel string, refresh bool,
		) (string, rueidis.Client, error) {
			if hangs {
				hangs = false
				<-ctx.Done()
				return "", nil, ctx.Err()
			}
			return f.route(ctx, channel, refresh)
		}
		start := time.Now()
		s := h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").accept()
		take(t, s)
		require.InDelta(t, routeTimeout, time.Since(start), float64(10*time.Millisecond))
	})
}
