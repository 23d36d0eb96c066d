package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// rueidis has no way to end the wait for its pool.
func TestCloseEndsWhileTheApplicationUsesTheWholePool(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options rlock.Options
		waits   bool // the pool is needed by a command, which nothing can end
	}{
		"by a subscription":      {rlock.Options{}, false},
		"by a replicated lock":   {rlock.Options{SyncReplicas: 1}, true},
		"and locks are released": {rlock.Options{ReleaseOnClose: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
				option := b.server.ClientOption()
				option.BlockingPoolSize = 1
				redis, err := rueidis.NewClient(option)
				require.NoError(t, err)
				defer redis.Close()
				c := newClientOn(t, redis, test.options)
				application, release := redis.Dedicate()
				require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())
				b.reply("acquire.lua", heldFor(60_000))
				waiter := lockInBackground(t.Context(), c.NewLock("order"), time.Minute)
				synctest.Wait()

				began := time.Now()
				err = c.Close(context.Background())
				if test.waits {
					require.ErrorContains(t, err, "close the rueidis client")
					require.Equal(t, 5*time.Second, time.Since(began))
				} else {
					require.NoError(t, err)
					require.LessOrEqual(t, time.Since(began), 250*time.Millisecond)
				}
				require.ErrorIs(t, result(t, waiter).Err, rlock.ErrClosed)

				release()
				closeClient(t, c)
				synctest.Wait()
				_, release = redis.Dedicate() // what waited for the pool has given it back
				release()
			})
		})
	}
}
