package pubsub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// connection is one pub/sub connection to one node, used by one goroutine.
type connection interface {
	// subscribe and unsubscribe send one command for each group of channels, all in
	// one batch, and return the error reply of each, nil for none. A group is
	// accepted or refused as a whole. When subscribe returns, the hook has run for
	// the first channel of each group that was accepted, perhaps not yet for the
	// others; when unsubscribe returns, it has run for all. err is set when the
	// connection is of no use any more, also because ctx ended; then nothing is
	// known of the channels.
	subscribe(ctx context.Context, groups [][]string) (replies []error, err error)
	unsubscribe(ctx context.Context, groups [][]string) (replies []error, err error)

	// lost delivers or is closed when the connection ends.
	lost() <-chan error

	// close ends the connection, and with it what is subscribed. It returns
	// within about two seconds.
	close()
}

// dialer makes a connection. The hooks run on its reader and may do so before
// dialer returns and after close.
type dialer func(client rueidis.Client, sharded bool, hooks rueidis.PubSubHooks) (connection, error)

const (
	// replyTimeout is the patience with a server that accepts commands and does
	// not answer. rueidis finds out about that by itself, unless its pings are
	// turned off.
	replyTimeout = 10 * time.Second

	// farewellTimeout bounds the UNSUBSCRIBE before the connection is closed.
	farewellTimeout = 500 * time.Millisecond
)

var (
	errLost     = errors.New("connection closed")
	errNoClient = errors.New("pubsub: the Route named a node without a client")
)

// redisConnection is a dedicated connection of rueidis.
//
// It is closed at the end rather than returned to the pool of its client: with
// RESP2, rueidis does its pub/sub on a second connection behind the dedicated
// one, which is not cleaned when the pool takes it back.
type redisConnection struct {
	client  rueidis.DedicatedClient
	sharded bool
	ended   <-chan error
	broken  bool
}

// dialRedis blocks for at most twice the dial time-out of the client (the
// connection, and the greeting on it), four times with RESP2.
func dialRedis(client rueidis.Client, sharded bool, hooks rueidis.PubSubHooks) (connection, error) {
	if client == nil {
		return nil, errNoClient
	}
	dedicated, _ := client.Dedicate()
	c := &redisConnection{
		client:  dedicated,
		sharded: sharded,
		ended:   dedicated.SetPubSubHooks(hooks),
	}
	select {
	case err := <-c.ended:
		dedicated.Close()
		return nil, lostError(err)
	default:
		return c, nil
	}
}

func (c *redisConnection) lost() <-chan error { return c.ended }

// subscribe relies on how rueidis counts: its answer to a SUBSCRIBE of several
// channels is what the server pushes for the first of them, and the pushes for
// the rest are skipped.
func (c *redisConnection) subscribe(ctx context.Context, groups [][]string) ([]error, error) {
	b := c.client.B()
	return c.each(ctx, groups, func(group []string) rueidis.Completed {
		if c.sharded {
			return b.Ssubscribe().Channel(group...).Build()
		}
		return b.Subscribe().Channel(group...).Build()
	})
}

// unsubscribe gets its answers behind all that the server pushes: they are those
// to the PINGs that rueidis sends.
func (c *redisConnection) unsubscribe(ctx context.Context, groups [][]string) ([]error, error) {
	if err := c.ping(ctx); err != nil {
		return nil, err
	}
	b := c.client.B()
	return c.each(ctx, groups, func(group []string) rueidis.Completed {
		if c.sharded {
			return b.Sunsubscribe().Channel(group...).Build()
		}
		return b.Unsubscribe().Channel(group...).Build()
	})
}

// ping must succeed before an UNSUBSCRIBE. rueidis sends a PING of its own behind each of those, to
// tell where their answers end, and panics, in a goroutine of its own, when that is refused for a
// reason that it does not know: MISCONF on a server that cannot save, MASTERDOWN on a replica.
// Closing the connection does the same then.
func (c *redisConnection) ping(ctx context.Context) error {
	results, err := c.do(ctx, rueidis.Commands{c.client.B().Ping().Build().Pin()})
	if err == nil {
		err = results[0].Error()
	}
	if reply, ok := rueidis.IsRedisErr(err); ok && expectedOfPing(reply.Error()) {
		err = nil
	}
	if err != nil {
		c.broken = !errors.Is(err, context.Canceled)
		return lostError(err)
	}
	return nil
}

// expectedOfPing tells whether rueidis takes an error reply to its PING for an answer to it.
func expectedOfPing(reply string) bool {
	return strings.HasPrefix(reply, "LOADING") || strings.HasPrefix(reply, "BUSY") ||
		strings.Contains(reply, "'ping'")
}

// each sends one command per group in a single batch.
func (c *redisConnection) each(
	ctx context.Context,
	groups [][]string,
	build func([]string) rueidis.Completed,
) ([]error, error) {
	commands := make(rueidis.Commands, len(groups))
	for i, group := range groups {
		// Pinned, because rueidis recycles the commands that succeeded and may
		// then send the batch again when the connection broke in the middle.
		commands[i] = build(group).Pin()
	}
	results, err := c.do(ctx, commands)
	replies := make([]error, len(results))
	for i, result := range results {
		replies[i] = result.Error()
		if failure := result.NonRedisError(); failure != nil {
			err = lostError(failure)
			break
		}
	}
	if err != nil {
		// Cancelled means that we were told to stop: the server is not to blame and
		// will hear the farewell.
		c.broken = !errors.Is(err, context.Canceled)
		return nil, err
	}
	return replies, nil
}

// do returns the replies, or an error as soon as the connection is lost or ctx
// ends. The watch on the connection is for RESP2: there rueidis takes the loss
// of its second connection for a passing trouble and retries without end.
func (c *redisConnection) do(
	ctx context.Context,
	commands rueidis.Commands,
) ([]rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	done := make(chan []rueidis.RedisResult, 1)
	go func() { done <- c.client.DoMulti(ctx, commands...) }()
	select {
	case results := <-done:
		return results, nil
	case err := <-c.ended:
		cancel()
		<-done // so that the goroutine does not outlive us
		return nil, lostError(err)
	}
}

// close says goodbye first when the server listens, so that nothing is
// subscribed any more when close returns: a server notices a closed socket in
// its own time.
func (c *redisConnection) close() {
	if !c.broken {
		ctx, cancel := context.WithTimeout(context.Background(), farewellTimeout)
		defer cancel()
		if c.ping(ctx) == nil {
			all := c.client.B().Unsubscribe().Build()
			if c.sharded {
				all = c.client.B().Sunsubscribe().Build()
			}
			_, _ = c.do(ctx, rueidis.Commands{all.Pin()})
		}
	}
	c.client.Close()
}

// lostError explains the end of a connection.
func lostError(err error) error {
	if err == nil {
		err = errLost
	}
	return fmt.Errorf("pubsub: %w", err)
}
