package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A writer that reads has two holds under one name, which may be released in any order.
func TestReleaseOnCloseReleasesTheReadAndTheWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 10 {
		client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
		pair, owner := client.NewReadWriteLock("lock"), rlock.WithOwner(t.Context())
		writing := takeWith(owner, t, pair.Write(), rlock.Watchdog)
		reading := takeWith(owner, t, pair.Read(), rlock.Watchdog)
		closeClient(t, client)
		require.ErrorIs(t, writing.Err(), rlock.ErrReleased)
		require.ErrorIs(t, reading.Err(), rlock.ErrReleased)
		requireFree(t, s, "lock")
	}
}

func TestReleaseOnCloseLogsWhatItCannotRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	logged := new(logtest.Lines)
	client := newClient(t, s, rlock.Options{ReleaseOnClose: true, Logger: logged.Logger()})
	hold := take(t, client.NewLock("order"), rlock.Watchdog)
	s.Do(t, "SET", "order", "not a lock")
	closeClient(t, client)
	require.Len(t, logged.With("not released on Close"), 1)
	require.Contains(t, logged.With("not released on Close")[0], hold.Owner())
}

// rueidis has no way to end the wait for its pool.
func TestCloseEndsWhileTheApplicationUsesTheWholePool(t *testing.T) {
	t.Parallel()
	for replicas, name := range []string{"by a subscription", "by a replicated lock"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
				option := b.server.ClientOption()
				option.BlockingPoolSize = 1
				redis, err := rueidis.NewClient(option)
				require.NoError(t, err)
				defer redis.Close()
				c := newClientOn(t, redis, rlock.Options{SyncReplicas: replicas})
				application, release := redis.Dedicate()
				require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())
				b.reply("acquire.lua", heldFor(60_000))
				waiter := lockInBackground(t.Context(), c.NewLock("order"), rlock.Lease(time.Minute))
				synctest.Wait()

				began := time.Now()
				err = c.Close(context.Background())
				if replicas > 0 { // the pool is needed by a command, which nothing can end
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
