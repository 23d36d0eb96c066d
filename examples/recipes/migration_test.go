package recipes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// TestGoAndJavaExcludeEachOther and that Java goes on after a roll-back. The stranger of rlocktest
// holds its lock as Redisson does.
func TestGoAndJavaExcludeEachOther(t *testing.T) {
	server := rlocktest.New(t)
	redis, err := rueidis.NewClient(server.ClientOption())
	require.NoError(t, err)
	defer redis.Close()
	client, err := besideJava(redis)
	require.NoError(t, err)
	lock := client.NewLock("order:42")

	java := server.Busy("app:order:42")
	_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	java()
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	held, err := server.Client().NewLock("app:order:42").IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, held)

	require.NoError(t, hold.Unlock())
	require.NoError(t, client.Close(context.Background()))
	server.Busy("app:order:42")
}

func TestNeighboringStagesExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := rlocktest.New(t)
		redis, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer redis.Close()
		errBusy := errors.New("busy")
		// As redislock and redsync do: a string under the name of the lock.
		obtain := func(ctx context.Context) (func(context.Context) error, error) {
			set := redis.B().Set().Key("order:42").Value("token").Nx().PxMilliseconds(30_000)
			if err := redis.Do(ctx, set.Build()).Error(); rueidis.IsRedisNil(err) {
				return nil, errBusy
			} else if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				return redis.Do(ctx, redis.B().Del().Key("order:42").Build()).Error()
			}, nil
		}
		run := func(s stage, work func(context.Context) error) error {
			client := server.NewClient(rlock.Options{NameMapper: rlock.Prefix("lock:")})
			return s.do(t.Context(), client.NewLock("order:42"), obtain, work)
		}
		// beside runs an instance while another one works.
		beside := func(other, s stage) (err error) {
			require.NoError(t, run(other, func(context.Context) error {
				err = run(s, func(context.Context) error { return nil })
				return nil
			}))
			return err
		}
		for _, s := range []stage{oldLock, bothLocks} {
			require.ErrorIs(t, beside(s, oldLock), errBusy)
			require.ErrorIs(t, beside(s, bothLocks), errBusy)
		}
		require.ErrorIs(t, beside(bothLocks, newLock), rlock.ErrNotAcquired)
		require.ErrorIs(t, beside(newLock, bothLocks), rlock.ErrNotAcquired)
		require.ErrorIs(t, beside(newLock, newLock), rlock.ErrNotAcquired)
		require.NoError(t, beside(oldLock, newLock), "why there is a stage between them")
	})
}
