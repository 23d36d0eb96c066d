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
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// watch records the queues of fair locks, and when this process or a server stands still, until the
// function that it returns is called.
func (r *run) watch() (stop func()) {
	ctx, cancel := context.WithCancel(r.tb.Context())
	var watching sync.WaitGroup
	redis := r.stage.clients()[0]
	for _, name := range r.scenario.locks()[history.Fair] {
		queue := wire.Prefix("redisson_lock_queue", name)
		watching.Go(func() {
			each(ctx, max(5*time.Millisecond, r.scenario.Pace/20), func() {
				r.sampleQueue(ctx, redis, name, queue)
			})
		})
	}
	if last := history.Now(); r.world != nil { // a bubble stands still only if all do
		watching.Go(func() {
			each(ctx, 5*time.Millisecond, func() {
				last = r.noteStandstill(last, history.Now())
			})
		})
		for _, server := range r.world.All() {
			redis := server.Client(r.tb, redistest.OneConnection, func(o *rueidis.ClientOption) {
				o.ForceSingleClient, o.DisableRetry = true, true
			})
			watching.Go(func() {
				each(ctx, 20*time.Millisecond, func() { r.pingServer(ctx, redis, server.Addr()) })
			})
		}
	}
	return func() {
		cancel()
		watching.Wait()
	}
}

// each calls f once in each interval until ctx ends.
func each(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		f()
	}
}

// longestStandstill is how long a process may stand still without being excused for what is late.
const longestStandstill = command / 2

// noteStandstill records a standstill if too much time has passed since last. It returns now.
func (r *run) noteStandstill(last, now history.Instant) history.Instant {
	if now.Sub(last) > longestStandstill {
		r.tb.Logf("the proxies did not run for %v: is the machine busy?", now.Sub(last))
		r.log.add(history.Event{At: last, What: history.Fault, Fault: history.Standstill,
			Delays: true})
		r.log.add(history.Event{At: now, Until: now.Add(command), What: history.Healed,
			Fault: history.Standstill})
	}
	return now
}

// pingServer records a standstill if a server takes too long to reply, and no fault of servers is
// the reason.
func (r *run) pingServer(ctx context.Context, redis rueidis.Client, address string) {
	ctx, cancel := context.WithTimeout(ctx, locktest.Timeout)
	defer cancel()
	faults, sent := r.serverFaults.Load(), history.Now()
	err := redis.Do(ctx, redis.B().Ping().Build()).Error()
	now := history.Now()
	if err != nil || now.Sub(sent) <= longestStandstill || faults%2 == 1 ||
		r.serverFaults.Load() != faults {
		return
	}
	fault := "standstill of " + address
	r.tb.Logf("%s for %v: is the machine busy?", fault, now.Sub(sent))
	r.log.add(history.Event{At: sent, What: history.Fault, Fault: fault, Delays: true})
	r.log.add(history.Event{At: now, Until: now.Add(command), What: history.Healed, Fault: fault})
}

// maxSampled is how many waiters of a queue are recorded, its head first. The others are seen when
// they move up.
const maxSampled = 100

// sampleQueue records a queue. A server that does not reply is asked later.
func (r *run) sampleQueue(ctx context.Context, redis rueidis.Client, name, queue string) {
	ctx, cancel := context.WithTimeout(ctx, command)
	defer cancel()
	at := history.Now()
	owners, err := redis.Do(ctx,
		redis.B().Lrange().Key(queue).Start(0).Stop(maxSampled-1).Build()).AsStrSlice()
	if err == nil && len(owners) > 0 {
		r.log.add(history.Event{At: at, Until: history.Now(), What: history.Queue, Name: name,
			Owners: owners})
	}
}

// sweep records whether every lock can be acquired again, and what is left behind.
func (r *run) sweep() {
	c := newClient(plan{Durable: r.scenario.Durable, WatchdogLease: r.scenario.lease()}, nil)
	for _, redis := range r.stage.clients() {
		locks, err := rlock.New(redis, rlock.Options{WatchdogLease: r.scenario.lease()})
		require.NoError(r.tb, err)
		c.rlocks = append(c.rlocks, locks)
	}
	var acquiring sync.WaitGroup // all at once: each must be free one lease from now
	for kind, names := range r.scenario.locks() {
		for _, name := range names {
			acquiring.Go(func() { r.log.add(r.acquire(c, history.Lock{Name: name, Kind: kind})) })
		}
	}
	some := make(chan struct{}, 64) // at a time: there may be thousands, which are free at once
	for _, name := range r.own() {
		acquiring.Go(func() {
			some <- struct{}{}
			r.log.add(r.acquire(c, history.Lock{Name: name, Kind: history.Plain}))
			<-some
		})
	}
	acquiring.Wait()
	for _, locks := range c.rlocks {
		require.NoError(r.tb, locks.Close(context.Background()))
	}
	for _, left := range r.left() {
		r.log.add(history.Event{At: history.Now(), What: history.Left, Error: left})
	}
}

// own returns the names of the locks that only one process used, ever.
func (r *run) own() []string {
	var names []string
	for _, s := range r.slots {
		for before := *s; before.restarts >= 0; before.restarts-- {
			names = append(names, r.scenario.kept(before.name())...)
			names = append(names, r.scenario.storm(before.name())...)
		}
	}
	return names
}

// acquire acquires a lock without other users. That must succeed once the leases of dead holders
// are over.
func (r *run) acquire(c *client, l history.Lock) history.Event {
	e := history.Event{What: history.Free, Name: l.Name}
	hold, err := c.lock(l).TryLock(context.Background(),
		2*r.scenario.lease()+2*pollInterval+5*command+slack, rlock.Watchdog)
	e.At = history.Now()
	if err == nil {
		err = hold.Unlock()
	}
	if err != nil {
		e.What, e.Error = history.Held, err.Error()
	}
	return e
}

// left returns what should not be on the servers any more, once keys had the time to expire.
func (r *run) left() []string {
	// A killed writer is waited for during a lease and two polls, a waiter with a hand-over during
	// three polls.
	for late := time.Now().Add(max(r.scenario.lease()+2*pollInterval, 3*pollInterval) + slack); ; {
		var left []string
		for _, s := range r.stage.all() {
			left = append(left, leftOn(s.Call, s.Addr())...)
		}
		if len(left) == 0 || time.Now().After(late) {
			return left
		}
		r.rest(20 * time.Millisecond)
	}
}

// leftOn lists the keys of a server except those of clients and the tokens, which stay, and its
// channels that still have subscribers.
func leftOn(call func(...string) (any, error), address string) []string {
	var left []string
	for _, question := range [][]string{{"KEYS", "*"}, {"PUBSUB", "CHANNELS"},
		{"PUBSUB", "SHARDCHANNELS"}} {
		reply, err := call(question...)
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v: %v", address, question, err))
			continue
		}
		list, _ := reply.([]any)
		for _, one := range list {
			text := fmt.Sprint(one)
			if strings.HasPrefix(text, "redisson_lock_token") || redistest.OfClient(text) ||
				strings.HasPrefix(text, "__sentinel__") {
				continue
			}
			left = append(left, fmt.Sprintf("%s: %s %s", address, strings.Join(question, " "),
				text))
		}
	}
	return left
}
