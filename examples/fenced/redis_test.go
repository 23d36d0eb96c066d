package fenced

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestRedisRejectsASmallerToken(t *testing.T) {
	server := rlocktest.New(t)
	redis, err := rueidis.NewClient(server.ClientOption())
	require.NoError(t, err)
	defer redis.Close()
	lock := server.Client().NewFencedLock("account:17")
	const key = "balance:17"

	first, err := lock.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, set(t.Context(), redis, key, "10", first.Token()))
	require.NoError(t, set(t.Context(), redis, key, "20", first.Token()), "a second write")
	require.NoError(t, first.Unlock())

	second, err := lock.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, set(t.Context(), redis, key, "30", second.Token()))
	require.ErrorIs(t, set(t.Context(), redis, key, "40", first.Token()), errStale)
	require.NoError(t, second.Unlock())

	value := redis.Do(t.Context(), redis.B().Hget().Key(key).Field("value").Build())
	stored, err := value.ToString()
	require.NoError(t, err)
	require.Equal(t, "30", stored)
}
