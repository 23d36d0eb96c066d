package contestants

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name of a script in Redis
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/bench/contest"
)

// script is a script that the server has loaded.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed floor/acquire.lua
	acquireText string
	//go:embed floor/release.lua
	releaseText string
	//go:embed floor/queue_acquire.lua
	queueAcquireText string
	//go:embed floor/queue_release.lua
	queueReleaseText string

	acquireScript      = newScript(acquireText)
	releaseScript      = newScript(releaseText)
	queueAcquireScript = newScript(queueAcquireText)
	queueReleaseScript = newScript(queueReleaseText)
)

// acquired is the reply of the acquiring scripts on success.
const acquired = -3

// rawLease is long, so that no benchmark sees its end. It is passed as text.
const rawLease = "30000"

// openRaw opens a client and loads the scripts: a floor sends EVALSHA only.
func openRaw(address string, s contest.Setup) (rueidis.Client, error) {
	client, err := openRueidis(address, s)
	if err != nil {
		return nil, err
	}
	for _, sc := range []script{acquireScript, releaseScript, queueAcquireScript,
		queueReleaseScript} {
		for _, node := range client.Nodes() {
			if err := node.Do(context.Background(),
				node.B().ScriptLoad().Script(sc.text).Build()).Error(); err != nil {
				client.Close()
				return nil, fmt.Errorf("script load: %w", err)
			}
		}
	}
	return client, nil
}

// run1 sends a script with one key, and run2 one with two. They pass the caller's own context on:
// rueidis pipelines a command whose context can be cancelled and has no deadline, for the other
// contestants that pass theirs on, too.
func run1(ctx context.Context, client rueidis.Client, sc script, key, arg1, arg2 string) (
	int64, error,
) {
	cmd := client.B().Evalsha().Sha1(sc.sha).Numkeys(1).Key(key).Arg(arg1, arg2).Build()
	return client.Do(ctx, cmd).AsInt64()
}

func run2(ctx context.Context, client rueidis.Client, sc script, key1, key2, arg1, arg2 string) (
	int64, error,
) {
	cmd := client.B().Evalsha().Sha1(sc.sha).Numkeys(2).Key(key1, key2).Arg(arg1, arg2).Build()
	return client.Do(ctx, cmd).AsInt64()
}

// receive waits for a signal, or until ctx ends, as every lock must. A floor that stops waiting
// keeps its place in the queue and blocks those after it: no context of a floor ends while it
// waits.
func receive(ctx context.Context, signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errNotHeld = errors.New("not held")

func heldOr(n int64, err error) error {
	if err == nil && n != 1 {
		return errNotHeld
	}
	return err
}

// clientNumber and lockerNumber are the last numbers in the names of clients and owners.
var clientNumber, lockerNumber atomic.Int64

func newClientName() string {
	return "floor-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(clientNumber.Add(1), 10)
}

// raw is the lock without contention: a script to acquire it, and one to release it.
func raw(name, setting string) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Floor,
		Open: func(s contest.Setup) (contest.Client, error) {
			client, err := openRaw(s.Addresses[0], s)
			if err != nil {
				return nil, err
			}
			return &rawClient{client, newClientName()}, nil
		}}
}

type rawClient struct {
	redis rueidis.Client
	name  string
}

func (c *rawClient) Locker(name string) contest.Locker {
	return &rawLocker{c.redis, name, "channel:" + name,
		c.name + ":" + strconv.FormatInt(lockerNumber.Add(1), 10)}
}

func (c *rawClient) Close() { c.redis.Close() }

type rawLocker struct {
	redis                rueidis.Client
	name, channel, owner string
}

// try makes one attempt.
func (l *rawLocker) try(ctx context.Context) (bool, error) {
	n, err := run1(ctx, l.redis, acquireScript, l.name, l.owner, rawLease)
	return n == acquired, err
}

func (l *rawLocker) Lock(ctx context.Context) error {
	ok, err := l.try(ctx)
	if err == nil && !ok {
		return contest.ErrGaveUp
	}
	return err
}

func (l *rawLocker) Unlock(ctx context.Context) error {
	return heldOr(run2(ctx, l.redis, releaseScript, l.name, l.channel, l.owner, ""))
}

// subscription delivers the messages of one channel until its client is closed.
type subscription struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// subscribe returns when the server has confirmed the subscription. deliver is called for one
// message at a time.
func subscribe(
	client rueidis.Client, channel string, deliver func(message string),
) (*subscription, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscription{cancel, make(chan struct{})}
	confirmed, failed := make(chan struct{}, 1), make(chan error, 1)
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		select {
		case confirmed <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(s.done)
		failed <- client.Receive(hooked, client.B().Subscribe().Channel(channel).Build(),
			func(m rueidis.PubSubMessage) { deliver(m.Message) })
	}()
	select {
	case <-confirmed:
		return s, nil
	case err := <-failed:
		cancel()
		return nil, fmt.Errorf("subscribe: %w", err)
	case <-time.After(5 * time.Second):
		cancel()
		return nil, errors.New("subscribe: not confirmed")
	}
}

func (s *subscription) close() {
	s.cancel()
	<-s.done
}
