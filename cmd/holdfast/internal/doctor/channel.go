package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/docs"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
)

// delivery bounds how long a message may take, and pause is between two.
const (
	delivery = 3 * time.Second
	pause    = 20 * time.Millisecond
)

const lateWaiters = "waiters notice an unlock up to 5 s late"

// channels looks at whether messages of unlocks arrive.
func channels(ctx context.Context, n *node) []Finding {
	sharded, err := n.sharded(ctx)
	if err != nil {
		return one(failure("grant +pubsub to this user", "the cluster rejected the question whether it "+
			"has sharded channels, and no lock works without the reply (%s)", reason(err)))
	}
	publish, subscribe := "PUBLISH", "SUBSCRIBE"
	if sharded {
		publish, subscribe = "SPUBLISH", "SSUBSCRIBE"
	}
	name := n.lockName()
	if name == "" {
		return nil
	}
	err = n.delivers(ctx, wire.Channel(name), publish, sharded)
	var refused *rueidis.RedisError
	switch {
	case errors.As(err, &refused):
		return one(warning("grant +"+strings.ToLower(publish)+" +"+
			strings.ToLower(subscribe)+" and the channels to this user (see "+docs.Base+
			"permissions.md)", lateWaiters+" (%s)", reason(err)))
	case err != nil:
		return one(warning("check that the service supports pub/sub",
			"a message did not arrive within %v, so "+lateWaiters, delivery))
	case n.address != "" && !sharded:
		return one(warning("use Redis 7 or newer", "the cluster has no sharded channels. Each unlock "+
			"costs a message to all nodes, and hand-overs work only within a process"))
	}
	found := one(ok("%s reaches %s", publish, subscribe))
	if sharded {
		mark := wire.ClassicChannels(wire.Channel(name))[1]
		if n.refuses(ctx, "access", "PUBLISH", mark, wire.Unlocked) {
			found = append(found, warning("grant &"+pattern("holdfast_classic:*:", n.Prefix)+
				" to this user, or use only sharded channels (option PubSub) if no such Redisson is in use",
				"Redisson before 3.28 does not wake waiters in Go, because this user may not use channels "+
					"such as %s",
				mark))
		}
		found = append(found, n.classicListeners(ctx)...)
	}
	return found
}

// mostChannels bounds how many channels the doctor counts listeners of.
const mostChannels = 1000

// classicListeners looks for clients that wait for a lock on a classic channel only, although the
// cluster has sharded ones. It finds nothing if the server refuses to list or count them.
func (n *node) classicListeners(ctx context.Context) []Finding {
	for _, r := range []rights{plain, readWrite} {
		channels, _ := n.do(ctx, "PUBSUB", "CHANNELS", pattern(r.channels[0], n.Prefix)).AsStrSlice()
		channels = channels[:min(len(channels), mostChannels)]
		if all, _ := survey.Subscribers(ctx, n.redis, false, channels); all == 0 {
			continue // as nearly always
		}
		for _, channel := range channels {
			listeners, _ := survey.Subscribers(ctx, n.redis, false, []string{channel})
			if listeners > 0 {
				return one(ok("clients wait on classic channels, such as %s, as Redisson before 3.28 does. "+
					"Do not set the option PubSub in Go, because its default wakes these clients",
					channel))
			}
		}
	}
	return nil
}

// sharded reports whether locks use sharded channels.
func (n *node) sharded(ctx context.Context) (bool, error) {
	if n.address == "" {
		return false, nil
	}
	err := n.do(ctx, "PUBSUB", "SHARDNUMSUB").Error()
	// A server before Redis 7 does not know the command.
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown") {
		return false, nil
	}
	return err == nil, err
}

// delivers publishes messages on a channel until one arrives.
func (n *node) delivers(ctx context.Context, channel, publish string, sharded bool) error {
	ctx, cancel := context.WithTimeout(ctx, delivery)
	defer cancel()
	command := n.redis.B().Subscribe().Channel(channel).Build()
	if sharded {
		command = n.redis.B().Ssubscribe().Channel(channel).Build()
	}
	received := make(chan error, 1)
	listening, stop := context.WithCancel(ctx)
	go func() {
		arrived := false
		err := n.redis.Receive(listening, command, func(rueidis.PubSubMessage) {
			arrived = true
			stop()
		})
		if arrived {
			err = nil
		}
		received <- err
	}()
	defer stop()
	for {
		if err := n.do(ctx, publish, channel, wire.Unlocked).Error(); err != nil {
			stop()
			return cmp.Or(err, <-received) // which ends, because of stop
		}
		select {
		case err := <-received:
			return err
		case <-time.After(pause):
		}
	}
}
