package once_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/once"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// counting counts the commands that are sent through it.
type counting struct {
	rueidis.Client
	sent   *atomic.Int64
	before func(n int64) // the n-th command; may be nil
}

func (c counting) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	n := c.sent.Add(1)
	if c.before != nil {
		c.before(n)
	}
	return c.Client.Do(ctx, command)
}

func TestThousandCallersOfAClientCostAsMuchAsOne(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var sent, runs atomic.Int64
		client, err := rlock.New(counting{raw(t, redis), &sent, nil}, rlock.Options{Anonymous: true})
		require.NoError(t, err)
		defer client.Close(t.Context()) //nolint:errcheck // ends with the test
		call := func(key string) {
			if _, err := once.Do(t.Context(), client, key, ttl, counted(&runs, time.Second)); err != nil {
				t.Error(err)
			}
		}
		call("warm up") // the scripts are loaded
		for _, callers := range []int{1, 1000} {
			sent.Store(0)
			runs.Store(0)
			key := time.Now().String()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { call(key) })
			}
			all.Wait()
			require.EqualValues(t, 1, runs.Load())
			require.EqualValues(t, 5, sent.Load(), "look, acquire, begin, store, release")
			call(key)
			require.EqualValues(t, 6, sent.Load(), "a look")
		}
		synctest.Wait()
	})
}
