package pubsub

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// connection is one pub/sub connection to one node, used by one goroutine.
type connection interface {
	// subscribe and unsubscribe send one command for each group of channels, all in one batch, and
	// return the error reply of each command, in the same order. classic has the groups of classic
	// channels beside sharded channels, which come first. The server accepts or rejects a group as a
	// whole. When subscribe returns, the hook has run for at least the first channel of each accepted
	// group. When unsubscribe returns, the hook has run for all channels. err is set if the connection
	// is unusable, even if only because ctx ended. The state of the channels is then unknown.
	subscribe(ctx context.Context, classic, groups [][]string) (replies []error, err error)
	unsubscribe(ctx context.Context, classic, groups [][]string) (replies []error, err error)

	lost() <-chan error // delivers or is closed when the connection ends
	close()             // ends the connection and its subscriptions within about two seconds
}

const (
	// replyTimeout bounds the wait for a server that accepts commands and does not reply. rueidis does
	// not detect such a server if its pings are turned off.
	replyTimeout = 10 * time.Second

	// farewellTimeout bounds the UNSUBSCRIBE before the connection is closed.
	farewellTimeout = 500 * time.Millisecond
)

// redisConnection is a dedicated connection of rueidis. At the end, close closes the connection and
// does not return it to the pool. With RESP2, rueidis uses a second connection for pub/sub behind
// the dedicated connection, and the pool does not reset the second connection.
type redisConnection struct {
	client  rueidis.DedicatedClient
	sharded bool
	classic bool // this connection has also subscribed to classic channels
	ended   <-chan error
	broken  bool
}

// dialRedis dials with a client. It blocks until ctx ends, or for as long as the application uses
// the whole pool of the client and then for at most twice its dial timeout (the connection, and the
// greeting), four times with RESP2. The hooks run on the reader of the connection, possibly before
// dialRedis returns and after close.
func dialRedis(
	ctx context.Context, client rueidis.Client, sharded bool, hooks rueidis.PubSubHooks,
) (connection, error) {
	if client == nil {
		return nil, errors.New("pubsub: the Route named a node without a client")
	}
	dialed := make(chan connection)
	failed := make(chan error, 1)
	// rueidis has no way to end the wait for its pool. So this goroutine may outlive the call, until
	// the pool has a connection. The goroutine then closes the connection, which frees the place in
	// the pool.
	go func() {
		dedicated, _ := client.Dedicate()
		if ctx.Err() != nil {
			dedicated.Close()
			return
		}
		ended := dedicated.SetPubSubHooks(hooks)
		select {
		case err := <-ended:
			dedicated.Close()
			failed <- cmp.Or(err, net.ErrClosed)
			return
		default:
		}
		select {
		case dialed <- &redisConnection{client: dedicated, sharded: sharded, ended: ended}:
		case <-ctx.Done():
			dedicated.Close()
		}
	}()
	select {
	case conn := <-dialed:
		return conn, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (rc *redisConnection) lost() <-chan error { return rc.ended }

// subscribe relies on how rueidis counts replies. The reply to a SUBSCRIBE of several channels is
// the push for the first channel, and rueidis skips the pushes for the rest.
func (rc *redisConnection) subscribe(ctx context.Context, classic, groups [][]string,
) ([]error, error) {
	rc.classic = rc.classic || len(classic) > 0
	return rc.do(ctx, rc.commands(classic, groups, func(group []string) rueidis.Completed {
		return rc.client.B().Subscribe().Channel(group...).Build()
	}, func(group []string) rueidis.Completed {
		return rc.client.B().Ssubscribe().Channel(group...).Build()
	}))
}

// unsubscribe gets its replies after all pushes of the server, because they are the replies to the
// PINGs that rueidis sends. An empty group stands for all channels.
//
// It returns an error if UNSUBSCRIBE is not safe. rueidis sends a PING after each UNSUBSCRIBE, to
// find the end of its replies. rueidis panics, in its own goroutine, if the server rejects the PING
// for a reason that rueidis does not know (MISCONF on a server that cannot save, MASTERDOWN on a
// replica), or rejects UNSUBSCRIBE for a reason that rueidis knows (BUSY). Closing the connection
// ends the subscriptions instead.
func (rc *redisConnection) unsubscribe(ctx context.Context, classic, groups [][]string,
) ([]error, error) {
	pong, err := rc.do(ctx, rueidis.Commands{rc.client.B().Ping().Build()})
	if err != nil {
		return nil, err
	}
	// Continue without a permission for PING, because rueidis takes that error for the reply, and
	// UNSUBSCRIBE works.
	if reply := pong[0]; reply != nil && !strings.Contains(reply.Error(), "'ping'") {
		rc.broken = true
		return nil, reply
	}
	return rc.do(ctx, rc.commands(classic, groups, func(group []string) rueidis.Completed {
		return rc.client.B().Unsubscribe().Channel(group...).Build()
	}, func(group []string) rueidis.Completed {
		return rc.client.B().Sunsubscribe().Channel(group...).Build()
	}))
}

// commands builds one command for each group.
func (rc *redisConnection) commands(classic, groups [][]string,
	ofClassic, ofSharded func(group []string) rueidis.Completed,
) rueidis.Commands {
	commands := make(rueidis.Commands, 0, len(classic)+len(groups))
	for _, group := range classic {
		commands = append(commands, ofClassic(group))
	}
	build := ofClassic
	if rc.sharded {
		build = ofSharded
	}
	for _, group := range groups {
		commands = append(commands, build(group))
	}
	return commands
}

// do sends the commands in a single batch. It returns the error replies, or an error as soon as the
// connection is lost or ctx ends. With RESP2, rueidis retries without end after the loss of its
// second connection, so do watches the connection itself.
func (rc *redisConnection) do(ctx context.Context, commands rueidis.Commands,
) (replies []error, err error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	for i := range commands {
		// Pin the commands, because rueidis recycles commands that succeeded, and may send the batch
		// again if the connection broke in the middle.
		commands[i] = commands[i].Pin()
	}
	done := make(chan []rueidis.RedisResult, 1)
	go func() { done <- rc.client.DoMulti(ctx, commands...) }()
	select {
	case results := <-done:
		for _, result := range results {
			err = result.NonRedisError()
			if err != nil {
				break
			}
			replies = append(replies, result.Error())
		}
	case err = <-rc.ended:
		err = cmp.Or(err, net.ErrClosed)
		cancel()
		<-done // the goroutine must not outlive the call
	}
	if err != nil {
		// After a cancellation the server still replies, so close unsubscribes.
		rc.broken = !errors.Is(err, context.Canceled)
	}
	return replies, err
}

// close unsubscribes first unless the connection is broken, so that nothing is subscribed when
// close returns. A server may notice a closed socket late.
func (rc *redisConnection) close() {
	if !rc.broken {
		ctx, cancel := context.WithTimeout(context.Background(), farewellTimeout)
		defer cancel()
		var classic [][]string
		if rc.classic {
			classic = [][]string{nil}
		}
		_, _ = rc.unsubscribe(ctx, classic, [][]string{nil})
	}
	rc.client.Close()
}
