package contestants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"holdfast/bench/contest"
)

// redislockWith is bsm/redislock, which waits only if it is given a retry strategy.
func redislockWith(name, setting string, retry func() redislock.RetryStrategy) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Other, Cut: true,
		Open: func(s contest.Setup) (contest.Client, error) {
			client, err := openGoRedis(s.Addresses[0], s)
			if err != nil {
				return nil, err
			}
			return &redislockClient{client, redislock.New(client), cmp.Or(s.Lease, 8*time.Second),
				retry}, nil
		}}
}

func recommendedBackoff() redislock.RetryStrategy {
	return redislock.ExponentialBackoff(16*time.Millisecond, 512*time.Millisecond)
}

type redislockClient struct {
	redis redis.UniversalClient
	lock  *redislock.Client
	lease time.Duration
	retry func() redislock.RetryStrategy
}

func (c *redislockClient) Locker(name string) contest.Locker {
	return &redislockLocker{client: c, name: name}
}

func (c *redislockClient) Close() { _ = c.redis.Close() }

type redislockLocker struct {
	client *redislockClient
	name   string
	lock   *redislock.Lock
}

func (l *redislockLocker) Lock(ctx context.Context) (err error) {
	l.lock, err = l.client.lock.Obtain(ctx, l.name, l.client.lease,
		&redislock.Options{RetryStrategy: l.client.retry()})
	// Without a deadline it waits for one lease.
	if ctx.Err() == nil &&
		(errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w: %w", contest.ErrGaveUp, err)
	}
	return err
}

func (l *redislockLocker) Unlock(ctx context.Context) error { return l.lock.Release(ctx) }
