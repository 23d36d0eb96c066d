package contestants

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"holdfast/bench/contest"
)

// queue is a queue in Redis: the release grants the lock to its head, and the message is the
// acquisition. It is first come, first served across processes, and takes two commands. It would
// not do as a lock: a process that dies in the queue blocks it.
func queue() contest.Contestant {
	return contest.Contestant{Name: "queue in Redis",
		Setting: "the release gives the lock to the head of a list; a process that dies would " +
			"block it", Part: contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			client, err := openRaw(s.Addresses[0], s)
			if err != nil {
				return nil, err
			}
			c := &queueClient{rawClient: rawClient{client, newClientName()}}
			c.sub, err = subscribe(client, c.name, c.deliver)
			if err != nil {
				client.Close()
				return nil, err
			}
			return c, nil
		}}
}

type queueClient struct {
	rawClient
	sub     *subscription
	lockers sync.Map // number as text -> *queueLocker
	next    atomic.Int64
}

func (c *queueClient) deliver(message string) {
	if l, ok := c.lockers.Load(message); ok {
		l.(*queueLocker).granted <- struct{}{}
	}
}

func (c *queueClient) Locker(name string) contest.Locker {
	number := strconv.FormatInt(c.next.Add(1), 10)
	l := &queueLocker{c, name, "queue:" + name, c.name + ":" + number, make(chan struct{}, 1)}
	c.lockers.Store(number, l)
	return l
}

func (c *queueClient) Close() {
	c.sub.close()
	c.redis.Close()
}

type queueLocker struct {
	client             *queueClient
	name, queue, owner string
	granted            chan struct{}
}

func (l *queueLocker) Lock(ctx context.Context) error {
	n, err := run2(ctx, l.client.redis, queueAcquireScript, l.name, l.queue, l.owner, rawLease)
	if err != nil || n == acquired {
		return err
	}
	return receive(ctx, l.granted)
}

func (l *queueLocker) Unlock(ctx context.Context) error {
	client := l.client.redis
	return heldOr(run2(ctx, client, queueReleaseScript, l.name, l.queue, l.owner, rawLease))
}
