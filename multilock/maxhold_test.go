package multilock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// granting returns the reply of a script on a server where nothing is in the way.
func granting(script string, args []string) any {
	switch script {
	case "batch_acquire.lua":
		return nil
	case "batch_release.lua":
		return []any{[]any{1, ""}, []any{1, ""}} // of two locks
	case "release_only.lua", "release.lua":
		return []any{1, ""}
	case "renew.lua":
		held := make([]any, len(args)/2)
		for i := range held {
			held[i] = 1
		}
		return held
	}
	return 1
}

// One script acquires the parts, and gives all of them the same lease.
func TestNestedMultiLocksDoNotExtendMaxHold(t *testing.T) {
	scripts := map[string]string{} // by their hash
	for file, source := range locktest.Scripts() {
		sum := sha1.Sum([]byte(source))
		scripts[hex.EncodeToString(sum[:])] = file
	}
	synctest.Test(t, func(t *testing.T) {
		server := fakeredis.New()
		defer server.Close()
		var batches atomic.Int64
		server.Handle("EVALSHA", func(args []string) any {
			script := scripts[args[1]]
			if script == "batch_acquire.lua" {
				batches.Add(1)
			}
			return granting(script, args[3:])
		})
		redis, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer redis.Close()
		c := newClientOn(t, redis, rlock.Options{MaxHold: 10 * time.Minute})
		defer closeClient(t, c) // before redis is closed
		l, start := multilock.NewOn(c, "a", "b"), time.Now()
		hold := take(t, l, rlock.Watchdog)
		for hold.Err() == nil && time.Since(start) < time.Hour {
			if nested, err := l.TryLock(hold.Context(), rlock.NoWait, rlock.Watchdog); err == nil {
				_ = nested.Unlock(t.Context())
			}
			time.Sleep(7 * time.Second)
		}
		require.LessOrEqual(t, time.Since(start), 10*time.Minute+7*time.Second)
		require.Greater(t, time.Since(start), 9*time.Minute)
		require.Greater(t, batches.Load(), int64(50))
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorContains(t, hold.Err(), "it was held for Options.MaxHold, 10m0s")
	})
}
