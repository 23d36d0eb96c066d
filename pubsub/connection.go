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
	// connection is of no use any more, also because ctx ended. The state of the
	// channels is unknown then.
	subscribe(ctx context.Context, groups [][]string) (replies []error, err error)
	unsubscribe(ctx context.Context, groups [][]string) (replies []error, err error)

	// lost delivers or is closed when the connection ends.
	lost() <-chan error

	// close ends the connection and its subscriptions. It returns within about two
	// seconds.
	close()
}

// dialer makes a connection. The hooks run on its reader, possibly before dialer
// returns and after close.
type dialer func(client rueidis.Client, sharded bool, hooks rueidis.PubSubHooks) (connection, error)

const (
	// replyTimeout bounds the wait for a server that accepts commands and does not
	// answer. rueidis detects such a server by itself unless its pings are turned off.
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
// RESP2, rueidis uses a second connection for pub/sub behind the dedicated one,
// which is not reset when the pool takes it back.
type redisConnection struct {
	client  rueidis.DedicatedClient
	sharded bool
	ended   <-chan error
	broken  bool
}

// dialRedis dials with a client. It blocks for at most twice the dial time-out of
// the client (the connection, and the greeting on it), four times with RESP2.
func dialRedis(client rueidis.Client, sharded bool, hooks rueidis.PubSubHooks) (connection, error) {
	if client == nil {
		return nil, errNoClient
	}
	dedicated, _ := client.Dedicate()
	rc := &redisConnection{
		client:  dedicated,
		sharded: sharded,
		ended:   dedicated.SetPubSubHooks(hooks),
	}
	select {
	case err := <-rc.ended:
		dedicated.Close()
		return nil, lostError(err)
	default:
		return rc, nil
	}
}

func (rc *redisConnection) lost() <-chan error { return rc.ended }

// subscribe relies on how rueidis counts replies: its answer to a SUBSCRIBE of
// several channels is the push for the first of them, and the pushes for the rest
// are skipped.
func (rc *redisConnection) subscribe(ctx context.Context, groups [][]string) ([]error, error) {
	b := rc.client.B()
	return rc.each(ctx, groups, func(group []string) rueidis.Completed {
		if rc.sharded {
			return b.Ssubscribe().Channel(group...).Build()
		}
		return b.Subscribe().Channel(group...).Build()
	})
}

// unsubscribe gets its answers after all pushes of the server, because they are the
// answers to the PINGs that rueidis sends.
func (rc *redisConnection) unsubscribe(ctx context.Context, groups [][]string) ([]error, error) {
	if err := rc.ping(ctx); err != nil {
		return nil, err
	}
	b := rc.client.B()
	return rc.each(ctx, groups, func(group []string) rueidis.Completed {
		if rc.sharded {
			return b.Sunsubscribe().Channel(group...).Build()
		}
		return b.Unsubscribe().Channel(group...).Build()
	})
}

// ping returns an error if the server must not be sent an UNSUBSCRIBE. rueidis sends
// a PING of its own after each of those, to tell where their answers end. It panics,
// in a goroutine of its own, when that PING is refused for a reason that it does not
// know: MISCONF on a server that cannot save, MASTERDOWN on a replica. Closing the
// connection ends the subscriptions instead.
func (rc *redisConnection) ping(ctx context.Context) error {
	results, err := rc.do(ctx, rueidis.Commands{rc.client.B().Ping().Build().Pin()})
	if err == nil {
		err = results[0].Error()
	}
	if reply, ok := rueidis.IsRedisErr(err); ok && expectedOfPing(reply.Error()) {
		err = nil
	}
	if err != nil {
		rc.broken = !errors.Is(err, context.Canceled)
		return lostError(err)
	}
	return nil
}

// expectedOfPing reports whether rueidis accepts an error reply as the answer to its
// PING.
func expectedOfPing(reply string) bool {
	return strings.HasPrefix(reply, "LOADING") || strings.HasPrefix(reply, "BUSY") ||
		strings.Contains(reply, "'ping'")
}

// each sends one command per group in a single batch.
func (rc *redisConnection) each(
	ctx context.Context, groups [][]string, build func([]string) rueidis.Completed,
) ([]error, error) {
	commands := make(rueidis.Commands, len(groups))
	for i, group := range groups {
		// Pinned, because rueidis recycles commands that succeeded, and may send the
		// batch again if the connection broke in the middle.
		commands[i] = build(group).Pin()
	}
	results, err := rc.do(ctx, commands)
	replies := make([]error, len(results))
	for i, result := range results {
		replies[i] = result.Error()
		if failure := result.NonRedisError(); failure != nil {
			err = lostError(failure)
			break
		}
	}
	if err != nil {
		// After a cancellation the server still answers, so close unsubscribes.
		rc.broken = !errors.Is(err, context.Canceled)
		return nil, err
	}
	return replies, nil
}

// do sends the commands and returns the replies, or an error as soon as the
// connection is lost or ctx ends. With RESP2 rueidis retries without end after the
// loss of its second connection, so do watches the connection itself.
func (rc *redisConnection) do(
	ctx context.Context, commands rueidis.Commands,
) ([]rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	done := make(chan []rueidis.RedisResult, 1)
	go func() { done <- rc.client.DoMulti(ctx, commands...) }()
	select {
	case results := <-done:
		return results, nil
	case err := <-rc.ended:
		cancel()
		<-done // the goroutine must not outlive the call
		return nil, lostError(err)
	}
}

// close unsubscribes first unless the connection is broken, so that nothing is
// subscribed when it returns: a server may notice a closed socket late.
func (rc *redisConnection) close() {
	if !rc.broken {
		ctx, cancel := context.WithTimeout(context.Background(), farewellTimeout)
		defer cancel()
		if rc.ping(ctx) == nil {
			all := rc.client.B().Unsubscribe().Build()
			if rc.sharded {
				all = rc.client.B().Sunsubscribe().Build()
			}
			_, _ = rc.do(ctx, rueidis.Commands{all.Pin()})
		}
	}
	rc.client.Close()
}

// lostError wraps the error that ended a connection, which may be nil.
func lostError(err error) error {
	if err == nil {
		err = errLost
	}
	return fmt.Errorf("pubsub: %w", err)
}
