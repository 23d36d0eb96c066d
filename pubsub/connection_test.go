//go:build redis

package pubsub

import (
	"context"
	"testing"

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
