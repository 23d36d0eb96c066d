package contestants

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"

	"holdfast/bench/contest"
)

// Importing go-zero prints a report on standard output every minute, even if it is not used.
func init() { logx.Disable() }

// goZero is go-zero's lock. It does not wait, so its callers poll; here as often as is best.
func goZero(name, setting string, every time.Duration) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Other,
		Open: func(s contest.Setup) (contest.Client, error) {
			store, err := redis.NewRedis(redis.RedisConf{Host: s.Addresses[0],
				Type: redis.NodeType})
			if err != nil {
				return nil, err
			}
			return goZeroClient{store, cmp.Or(s.Lease, 8*time.Second), every}, nil
		}}
}

type goZeroClient struct {
	store *redis.Redis
	lease time.Duration
	every time.Duration
}

func (c goZeroClient) Locker(name string) contest.Locker {
	lock := redis.NewRedisLock(c.store, name)
	lock.SetExpire(int(math.Ceil(c.lease.Seconds())))
	return goZeroLocker{lock, c.every}
}

func (goZeroClient) Close() {} // the library keeps its connections for the life of the process

type goZeroLocker struct {
	lock  *redis.RedisLock
	every time.Duration
}

func (l goZeroLocker) Lock(ctx context.Context) error {
	for {
		ok, err := l.lock.AcquireCtx(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.every):
		}
	}
}

func (l goZeroLocker) Unlock(ctx context.Context) error {
	ok, err := l.lock.ReleaseCtx(ctx)
	if !ok && err == nil {
		return errors.New("not held")
	}
	return err
}
