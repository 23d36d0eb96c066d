package rlock_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// countUnder increments a counter that only the lock protects: it reads it, and writes the value
// plus one, in a nested section. After n of them the counter is n, unless two overlapped.
func countUnder(ctx context.Context, lock *rlock.Lock, redis rueidis.Client, counter string) error {
	return rlock.Do(ctx, lock, 30*time.Second, rlock.Watchdog, func(ctx context.Context) error {
		n, err := redis.Do(ctx, redis.B().Get().Key(counter).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
		return rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, func(ctx context.Context) error {
			next := strconv.FormatInt(n+1, 10)
			set := redis.B().Arbitrary("SET").Keys(counter).Args(next).Build()
			return errors.Join(redis.Do(ctx, set).Error(), ctx.Err())
		})
	})
}
