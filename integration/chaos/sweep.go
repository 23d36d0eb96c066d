package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/lua"
	"holdfast/rlock"
)

// watchQueues records who stands in the queues of fair locks, again and again, until the function that it returns is called.
func (r *run) watchQueues() (stop func()) {
	ctx, cancel := context.WithCancel(r.tb.Context())
	var watching sync.WaitGroup
	redis := r.world.clients[0]
	for _, name := range r.scenario.locks()[history.Fair] {
		queue := lua.Prefix("redisson_lock_queue", name)
		watching.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-again.C:
				}
				r.look(ctx, redis, name, queue)
			}
		})
	}
	return func() {
		cancel()
		watching.Wait()
	}
}

// longestLook is how many places of a queue are recorded, its head first. The others are seen as
// they move up.
const longestLook = 100

// look records who stands in a queue. A server that does not answer just then is asked later.
func (r *run) look(ctx context.Context, redis rueidis.Client, name, queue string) {
	ctx, cancel := context.WithTimeout(ctx, command)
	defer cancel()
	at := history.Now()
	owners, err := redis.Do(ctx, redis.B().Lrange().Key(queue).Start(0).Stop(longestLook-1).Build()).AsStrSlice()
	if err == nil && len(owners) > 0 {
		r.log.add(history.Event{At: at, Until: history.Now(), What: history.Queue, Name: name, Owners: owners})
	}
}

// sweep sees whether every lock can be taken again, and what is left behind.
func (r *run) sweep() {
	c := newClient(plan{Durable: r.scenario.Durable, WatchdogLease: r.scenario.lease()}, nil)
	for _, redis := range r.world.clients {
		locks, err := rlock.New(redis, rlock.Options{WatchdogLease: r.scenario.lease()})
		require.NoError(r.tb, err)
		c.rlocks = append(c.rlocks, locks)
	}
	var taking sync.WaitGroup // all at once, because they have to be free one lease from now
	for kind, names := range r.scenario.locks() {
		for _, name := range names {
			taking.Go(func() { r.log.add(r.take(c, history.Lock{Name: name, Kind: kind})) })
		}
	}
	taking.Wait()
	for _, locks := range c.rlocks {
		require.NoError(r.tb, locks.Close(context.Background()))
	}
	for _, left := range r.left() {
		r.log.add(history.Event{At: history.Now(), What: history.Left, Error: left})
	}
}

// take takes a lock that nobody wants any more, which must be possible when the leases of all who died are over.
func (r *run) take(c *client, l history.Lock) history.Event {
	e := history.Event{What: history.Free, Name: l.Name}
	hold, err := c.lock(l).TryLock(context.Background(), 2*r.scenario.lease()+2*longestPark+5*command+slack, rlock.Watchdog)
	e.At = history.Now()
	if err == nil {
		err = hold.Unlock(context.Background())
	}
	if err != nil {
		e.What, e.Error = history.Taken, err.Error()
	}
	return e
}

// left is what should not be on the servers any more, when the keys that end by themselves had the time to.
func (r *run) left() []string {
	// A writer that was killed is awaited for a lease and two naps; who waited for a lock that is handed over, for three.
	for late := time.Now().Add(max(r.scenario.lease()+2*longestPark, 3*longestPark) + slack); ; {
		var left []string
		for _, s := range r.world.All() {
			left = append(left, leftOn(s.Call, s.Addr())...)
		}
		if len(left) == 0 || time.Now().After(late) {
			return left
		}
		r.rest(20 * time.Millisecond)
	}
}

// leftOn lists the keys of a server, but for the tokens that stay, and channels to which somebody still listens.
func leftOn(call func(...string) (any, error), address string) []string {
	var left []string
	for _, question := range [][]string{{"KEYS", "*"}, {"PUBSUB", "CHANNELS"}, {"PUBSUB", "SHARDCHANNELS"}} {
		reply, err := call(question...)
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v: %v", address, question, err))
			continue
		}
		answers, _ := reply.([]any)
		for _, answer := range answers {
			text := fmt.Sprint(answer)
			if strings.HasPrefix(text, "redisson_lock_token") || strings.HasPrefix(text, "__sentinel__") {
				continue
			}
			left = append(left, fmt.Sprintf("%s: %s %s", address, strings.Join(question, " "), text))
		}
	}
	return left
}
