//go:build redis

package pubsub

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestOnlyAFailedConnectionIsClosedWithoutFarewell(t *testing.T) {
	server := redistest.Start(t)
	dialled, err := dialRedis(t.Context(), server.Client(t), false,
		rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	require.NoError(t, err)
	c := dialled.(*redisConnection)
	t.Cleanup(c.close)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.subscribe(ctx, nil, [][]string{{"c"}})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, c.broken, "the server still listens after the caller's context ended")

	server.Kill(t)
	_, err = c.subscribe(t.Context(), nil, [][]string{{"c"}})
	require.Error(t, err)
	require.True(t, c.broken)
}

func TestCloseOfABrokenConnectionDoesNotWaitForAFarewell(t *testing.T) {
	server := redistest.Start(t)
	const limit = time.Second + farewellTimeout/2 // rueidis itself takes a second
	best := time.Hour
	for try := 0; try < 3 && best >= limit; try++ { // a busy machine may delay one attempt
		dialled, err := dialRedis(t.Context(), server.Client(t), false,
			rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
		require.NoError(t, err)
		c := dialled.(*redisConnection)
		server.Pause(t)
		c.broken = true
		start := time.Now()
		c.close()
		best = min(best, time.Since(start))
		server.Resume(t)
	}
	require.Less(t, best, limit)
}
