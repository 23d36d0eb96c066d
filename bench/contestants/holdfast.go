package contestants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// holdfast is this library's plain lock, held with the watchdog.
func holdfast(name, setting string, o rlock.Options) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Ours,
		Open: func(s contest.Setup) (contest.Client, error) {
			o.WatchdogLease = s.Period
			client, err := newHoldfast(s.Addresses[0], s, o)
			if err != nil {
				return nil, err
			}
			return client, nil
		}}
}

type holdfastClient struct {
	redis  rueidis.Client
	client *rlock.Client
}

func newHoldfast(address string, s contest.Setup, o rlock.Options) (*holdfastClient, error) {
	redis, err := openRueidis(address, s)
	if err != nil {
		return nil, err
	}
	client, err := rlock.New(redis, o)
	if err != nil {
		redis.Close()
		return nil, err
	}
	return &holdfastClient{redis, client}, nil
}

func (c *holdfastClient) Locker(name string) contest.Locker {
	return &holdfastLocker{lock: c.client.NewLock(name), lease: rlock.Watchdog}
}

func (c *holdfastClient) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = c.client.Close(ctx) // the rest ends with its connection
	c.redis.Close()
}

type holdfastLocker struct {
	lock  rlock.Locker
	lease rlock.Lease
	hold  *rlock.Hold
}

func (l *holdfastLocker) Lock(ctx context.Context) (err error) {
	l.hold, err = l.lock.Lock(ctx, l.lease)
	return err
}

func (l *holdfastLocker) Unlock(ctx context.Context) error { return l.hold.Unlock() }

// fairLock is this library's fair lock. Its callers may be too many to have a turn each.
func fairLock() contest.Contestant {
	c := holdfast("holdfast, fair", "NewFairLock", rlock.Options{})
	open := c.Open
	c.Cut = true
	c.Open = func(s contest.Setup) (contest.Client, error) {
		client, err := open(s)
		if err != nil {
			return nil, err
		}
		return fairClient{client.(*holdfastClient)}, nil
	}
	return c
}

type fairClient struct{ *holdfastClient }

func (c fairClient) Locker(name string) contest.Locker {
	return &holdfastLocker{lock: c.client.NewFairLock(name), lease: rlock.Watchdog}
}

// holdfastRedLock is this library's lock over several servers.
func holdfastRedLock(name, setting string, o redlock.Options) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Ours,
		Open: func(s contest.Setup) (contest.Client, error) {
			c := &redLockClient{options: o, lease: rlock.Lease(s.Lease)}
			for _, address := range s.Addresses {
				node, err := newHoldfast(address, s, rlock.Options{WatchdogLease: s.Period})
				if err != nil {
					c.Close()
					return nil, fmt.Errorf("node %s: %w", address, err)
				}
				c.nodes = append(c.nodes, node)
			}
			return c, nil
		}}
}

type redLockClient struct {
	options redlock.Options
	lease   rlock.Lease
	nodes   []*holdfastClient
}

func (c *redLockClient) Locker(name string) contest.Locker {
	var clients []*rlock.Client
	for _, node := range c.nodes {
		clients = append(clients, node.client)
	}
	return &quorumLocker{holdfastLocker{lock: redlock.NewOn(name, c.options, clients...),
		lease: c.lease}}
}

func (c *redLockClient) Close() {
	for _, node := range c.nodes {
		node.Close()
	}
}

type quorumLocker struct{ holdfastLocker }

// Lock gives up if too few nodes count yet, such as those that have just been started.
func (l *quorumLocker) Lock(ctx context.Context) error {
	err := l.holdfastLocker.Lock(ctx)
	if errors.Is(err, redlock.ErrNoQuorum) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", contest.ErrGaveUp, err)
	}
	return err
}
