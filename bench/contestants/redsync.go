package contestants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidiscompat"

	"holdfast/bench/contest"
)

// redsyncOn is redsync on a driver. Its mutex is made once per goroutine and reused, which is
// cheaper than the way of its README.
func redsyncOn(name, setting string, pools func(contest.Setup) ([]redsyncredis.Pool, func(), error),
	options ...redsync.Option) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Other,
		Open: func(s contest.Setup) (contest.Client, error) {
			ps, closeAll, err := pools(s)
			if err != nil {
				return nil, err
			}
			if s.Lease != 0 {
				options = append(options[:len(options):len(options)], redsync.WithExpiry(s.Lease))
			}
			return &redsyncClient{redsync: redsync.New(ps...), options: options,
				close: closeAll}, nil
		}}
}

func rueidisPools(s contest.Setup) (pools []redsyncredis.Pool, closeAll func(), err error) {
	var closers []func()
	closeAll = func() {
		for _, c := range closers {
			c()
		}
	}
	for _, address := range s.Addresses {
		client, err := openRueidis(address, s)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		closers = append(closers, client.Close)
		pools = append(pools, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(client)))
	}
	return pools, closeAll, nil
}

func goredisPools(s contest.Setup) (pools []redsyncredis.Pool, closeAll func(), err error) {
	var clients []redis.UniversalClient
	closeAll = func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
	for _, address := range s.Addresses {
		client, err := openGoRedis(address, s)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, client)
		pools = append(pools, redsyncgoredis.NewPool(client))
	}
	return pools, closeAll, nil
}

type redsyncClient struct {
	redsync *redsync.Redsync
	options []redsync.Option
	close   func()
}

func (c *redsyncClient) Locker(name string) contest.Locker {
	return redsyncLocker{c.redsync.NewMutex(name, c.options...)}
}

func (c *redsyncClient) Close() { c.close() }

type redsyncLocker struct{ mutex *redsync.Mutex }

func (l redsyncLocker) Lock(ctx context.Context) error {
	err := l.mutex.LockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", contest.ErrGaveUp, err)
	}
	return err
}

func (l redsyncLocker) Unlock(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	if !ok && err == nil {
		return errors.New("not held")
	}
	if ok {
		return nil // a minority of servers may have failed
	}
	return err
}

// endless makes redsync wait until its context ends, as the others do, instead of for 32 tries.
const endless = 1 << 30

// polling returns the options of a poller that asks as often as is best here.
func polling(every time.Duration) []redsync.Option {
	return []redsync.Option{redsync.WithTries(endless), redsync.WithRetryDelay(every)}
}
