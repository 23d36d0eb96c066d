//go:build redis

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

func TestShopThatIsTerminatedKeepsNoLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, sku := range skus {
		redis.Do(t, "SET", "stock:"+sku, "1000000")
	}
	shop := locktest.StartProcess(t, "shop", redis.Addr(), "4", "1000000")
	require.Equal(t, "ready", shop.Line(t))
	shop.Tell(t, "")
	require.Eventually(t, func() bool { return redis.DoInt(t, "INCRBY", "sold:book", "0") > 0 },
		locktest.Timeout, time.Millisecond)
	require.NoError(t, shop.Signal(syscall.SIGTERM))
	shop.Wait(t)
	keys, err := redis.CallKeys()
	require.NoError(t, err)
	for _, key := range keys {
		require.False(t, strings.HasPrefix(key, "shop:"), "%q is left", key)
	}
}
