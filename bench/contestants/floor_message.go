package contestants

import (
	"context"

	"holdfast/bench/contest"
)

// message is no lock at all: Unlock publishes, and Lock waits for that. No message between
// processes through Redis is quicker.
func message() contest.Contestant {
	return contest.Contestant{Name: "message alone", Setting: "PUBLISH, and nothing else: no lock",
		Part: contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			return openListener(s, func(c *listener, name string) contest.Locker {
				return &messageLocker{c, name, s.Waiter}
			})
		}}
}

type messageLocker struct {
	client *listener
	name   string
	waits  bool
}

func (l *messageLocker) Lock(ctx context.Context) error {
	if l.waits {
		return receive(ctx, l.client.messages)
	}
	return nil
}

func (l *messageLocker) Unlock(ctx context.Context) error {
	if l.waits {
		return nil
	}
	redis := l.client.redis
	return redis.Do(ctx, redis.B().Publish().Channel(floorChannel).Message("0").Build()).Error()
}

// announced is the raw scripts with a message at each release, after which a waiter tries again.
func announced() contest.Contestant {
	return contest.Contestant{Name: "message and acquire script",
		Setting: "the release publishes, and who hears that runs the script to acquire",
		Part:    contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			return openListener(s, func(c *listener, name string) contest.Locker {
				inner := c.rawClient.Locker(name).(*rawLocker)
				inner.channel = floorChannel
				return &announcedLocker{*inner, c}
			})
		}}
}

type announcedLocker struct {
	rawLocker
	client *listener
}

func (l *announcedLocker) Lock(ctx context.Context) error {
	for {
		ok, err := l.try(ctx)
		if ok || err != nil {
			return err
		}
		if err := receive(ctx, l.client.messages); err != nil {
			return err
		}
	}
}

// floorChannel is the channel of all listeners.
const floorChannel = "floor-messages"

// listener is a client that receives one channel, for one goroutine.
type listener struct {
	rawClient
	sub      *subscription
	locker   func(c *listener, name string) contest.Locker
	messages chan struct{}
}

func openListener(
	s contest.Setup, locker func(c *listener, name string) contest.Locker,
) (contest.Client, error) {
	client, err := openRaw(s.Addresses[0], s)
	if err != nil {
		return nil, err
	}
	c := &listener{rawClient: rawClient{client, newClientName()}, locker: locker,
		messages: make(chan struct{}, 1)}
	if !s.Waiter {
		return c, nil
	}
	c.sub, err = subscribe(client, floorChannel, func(string) {
		select {
		case c.messages <- struct{}{}:
		default:
		}
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return c, nil
}

func (c *listener) Locker(name string) contest.Locker { return c.locker(c, name) }

func (c *listener) Close() {
	if c.sub != nil {
		c.sub.close()
	}
	c.redis.Close()
}
