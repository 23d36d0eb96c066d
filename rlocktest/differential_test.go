//go:build redis && !race

package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// The same random calls are made on both servers, one after another, and must have the same
// outcome. HOLDFAST_RLOCKTEST_SEED=new draws other calls. The race detector would only slow down
// the Lua of the server in this process.
func TestRandomCallsHaveTheSameOutcomeAsOnARealRedis(t *testing.T) {
	seed := locktest.Seed(t, "HOLDFAST_RLOCKTEST_SEED")
	calls := locktest.Times(t, "HOLDFAST_RLOCKTEST_CALLS", 5000)
	for name, preference := range map[string]rlock.WriterPreference{
		// What a writer or reader that waited leaves behind lasts for a moment of real time, which
		// differs between servers. So nobody waits for a read-write lock in the first half.
		"writers come first": rlock.PreferWriters, "nobody comes first": rlock.PreferNobody,
	} {
		t.Run(name, func(t *testing.T) {
			g := &game{t: t, dice: rand.New(rand.NewPCG(seed, uint64(preference))),
				waitsForReaders: preference == rlock.PreferNobody}
			options := rlock.Options{WriterPreference: preference, WatchdogLease: 10 * time.Minute,
				Logger: slog.New(slog.DiscardHandler)}

			inProcess := rlocktest.New(t)
			inProcess.Allow(rlocktest.Holds | rlocktest.Orders | rlocktest.Owners)
			raw, err := rueidis.NewClient(inProcess.ClientOption())
			require.NoError(t, err)
			t.Cleanup(raw.Close)
			g.worlds[0] = newWorld(raw, inProcess.NewClient(options), inProcess.NewClient(options))

			server := redistest.Start(t)
			g.worlds[1] = newWorld(server.Client(t), newRealClient(t, server, options),
				newRealClient(t, server, options))
			for range calls / 2 {
				g.play()
			}
			t.Log(g.counts)
			for kind := range g.kinds() {
				require.NotZero(t, g.counts[kind], kind)
			}
		})
	}
}

func newRealClient(t *testing.T, s *redistest.Server, options rlock.Options) *rlock.Client {
	t.Helper()
	c, err := rlock.New(s.Client(t), options)
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, c) })
	return c
}

// game makes calls in two worlds, and compares them.
type game struct {
	t               *testing.T
	dice            *rand.Rand
	worlds          [2]*world
	waitsForReaders bool
	counts          map[string]int // of calls and outcomes
	latest          []string
}

// world is what the calls have led to on one server.
type world struct {
	clients []*rlock.Client
	redis   rueidis.Client
	owners  []context.Context
	holds   []*rlock.Hold  // in the order of their acquisition
	names   map[string]int // owners in Redis: the number of the first hold of each
}

const (
	owners = 6  // by turns, of the two clients
	recent = 30 // holds that a call may concern
	// A machine that is busy must reply within these.
	shortWait, shortLease = 200 * time.Millisecond, 300 * time.Millisecond
)

func newWorld(redis rueidis.Client, clients ...*rlock.Client) *world {
	w := &world{clients: clients, redis: redis, names: make(map[string]int)}
	for range owners {
		w.owners = append(w.owners, rlock.WithOwner(context.Background()))
	}
	return w
}

// locks are all locks of the game: their kind and name.
var locks = []struct {
	kind, name string
	of         func(c *rlock.Client, name string) rlock.Locker
}{
	{"plain", "p1", func(c *rlock.Client, n string) rlock.Locker { return c.NewLock(n) }},
	{"plain", "p2", func(c *rlock.Client, n string) rlock.Locker { return c.NewLock(n) }},
	{"fair", "f1", func(c *rlock.Client, n string) rlock.Locker { return c.NewFairLock(n) }},
	{"fair", "f2", func(c *rlock.Client, n string) rlock.Locker { return c.NewFairLock(n) }},
	{"read", "rw", func(c *rlock.Client, n string) rlock.Locker {
		return c.NewReadWriteLock(n).Read()
	}},
	{"write", "rw", func(c *rlock.Client, n string) rlock.Locker {
		return c.NewReadWriteLock(n).Write()
	}},
	{"fenced", "t1", func(c *rlock.Client, n string) rlock.Locker { return c.NewFencedLock(n) }},
	{"nonreentrant", "n1", func(c *rlock.Client, n string) rlock.Locker {
		return c.NewNonReentrantLock(n)
	}},
	{"nonreentrant fair", "n2", func(c *rlock.Client, n string) rlock.Locker {
		return c.NewNonReentrantFairLock(n)
	}},
	{"several", "p1", func(c *rlock.Client, _ string) rlock.Locker {
		return multilock.New(c.NewLock("p1"), c.NewLock("p2"))
	}},
}

// call is one call, the same in both worlds.
type call struct {
	kind         string
	owner, other int // other is a second owner
	lock, hold   int
	lease        time.Duration
	named        bool // the owner is in the context
}

func (c call) String() string {
	return fmt.Sprintf("%s: owner %d (%d), %s %s, hold %d, lease %v, named %t", c.kind, c.owner,
		c.other, locks[c.lock].kind, locks[c.lock].name, c.hold, c.lease, c.named)
}

// kinds has the weight of each kind of call.
func (*game) kinds() map[string]int {
	return map[string]int{
		"acquire": 102, "release": 78, "release without hold": 24, "release again": 9,
		"extend": 18, "force unlock": 9, "info": 30, "hold count": 15, "vanish": 6,
		"wait in vain": 3, "expire": 1, "hand over": 15,
	}
}

// play makes a random call, and requires the same outcome in both worlds.
func (g *game) play() {
	g.t.Helper()
	w := g.worlds[0]
	c := call{owner: g.dice.IntN(owners), other: g.dice.IntN(owners), lock: g.dice.IntN(len(locks)),
		lease: []time.Duration{rlock.Watchdog, time.Minute, time.Hour}[g.dice.IntN(3)],
		named: g.dice.IntN(5) > 0}
	if len(w.holds) > 0 {
		c.hold = len(w.holds) - 1 - g.dice.IntN(min(len(w.holds), recent))
	}
	total := 0
	for _, kind := range sorted(g.kinds()) {
		total += g.kinds()[kind]
	}
	at := g.dice.IntN(total)
	for _, kind := range sorted(g.kinds()) {
		if at -= g.kinds()[kind]; at < 0 {
			c.kind = kind
			break
		}
	}
	waits := c.kind == "wait in vain" || c.kind == "hand over"
	if waits && !g.waitsForReaders && locks[c.lock].name == "rw" {
		c.lock = 0
	}
	var outcomes [2]chan string
	for i, w := range g.worlds {
		outcomes[i] = make(chan string, 1)
		go func() {
			outcome := w.make(c)
			outcomes[i] <- outcome + w.settled()
		}()
	}
	first, second := <-outcomes[0], <-outcomes[1]
	g.latest = append(g.latest, c.String()+" -> "+first)
	if len(g.latest) > 20 {
		g.latest = g.latest[1:]
	}
	require.Equal(g.t, second, first, "in process, and on a real Redis: call %d of\n%s",
		len(g.latest), strings.Join(g.latest, "\n"))
	if g.counts == nil {
		g.counts = make(map[string]int)
	}
	g.counts[c.kind]++
	outcome, _, _ := strings.Cut(first, ";")
	if c.kind == "acquire" || waits {
		g.counts[c.kind+" "+locks[c.lock].kind+" "+strings.Fields(outcome + " ")[0]]++
	}
}

func sorted(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// make makes a call and describes its outcome.
func (w *world) make(c call) string {
	ctx := context.Background()
	owned := ctx
	if c.named {
		owned = w.owners[c.owner]
	}
	l := w.lock(c.owner, c.lock)
	var hold *rlock.Hold
	if len(w.holds) > 0 {
		hold = w.holds[c.hold]
	}
	switch c.kind {
	case "acquire":
		h, err := l.TryLock(owned, rlock.NoWait, c.lease)
		return w.acquired(h, err)
	case "wait in vain":
		// Nobody releases the lock meanwhile, so it is refused unless it is free.
		h, err := l.TryLock(owned, shortWait, c.lease)
		return w.acquired(h, err)
	case "release", "release again", "extend":
		if hold == nil {
			return "no hold"
		}
		if c.kind == "extend" {
			return w.describe(hold.Extend(ctx, 2*time.Hour))
		}
		outcome := w.describe(hold.Unlock(ctx))
		if c.kind == "release again" {
			outcome += w.describe(hold.Unlock(ctx))
		}
		return outcome
	case "release without hold":
		return w.describe(l.Unlock(owned))
	case "force unlock":
		lock, ok := l.(*rlock.Lock)
		if !ok {
			return "not one lock"
		}
		forced, err := lock.ForceUnlock(ctx)
		return fmt.Sprint(forced, w.describe(err))
	case "info":
		return w.info(l)
	case "hold count":
		lock, ok := l.(*rlock.Lock)
		if !ok {
			return "not one lock"
		}
		count, err := lock.HoldCount(owned)
		held, err2 := lock.IsHeld(owned)
		return fmt.Sprint(count, held, w.describe(err), w.describe(err2))
	case "vanish":
		return w.vanish(locks[c.lock].name)
	case "expire":
		h, err := l.TryLock(owned, rlock.NoWait, shortLease)
		if err != nil {
			return w.acquired(h, err)
		}
		// The lock lasts for longer than its deadline says, and if this is a level, for much longer.
		time.Sleep(shortLease + 50*time.Millisecond)
		if h.Valid() {
			return w.acquired(h, err)
		}
		<-h.Done()
		return w.acquired(h, err) + w.describe(h.Unlock(ctx)) + w.info(l)
	case "hand over":
		return w.handOver(c, l)
	}
	panic(c.kind)
}

func (w *world) lock(owner, lock int) rlock.Locker {
	return locks[lock].of(w.clients[owner%len(w.clients)], locks[lock].name)
}

// handOver has another owner wait for the lock of one that has acquired it, and then releases it.
func (w *world) handOver(c call, l rlock.Locker) string {
	if c.owner == c.other || locks[c.lock].kind == "several" || locks[c.lock].kind == "read" {
		return "not possible"
	}
	h, err := l.TryLock(rlock.WithOwner(context.Background()), rlock.NoWait, time.Minute)
	if err != nil {
		return w.acquired(h, err)
	}
	outcome := w.acquired(h, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	done := locktest.LockInBackground(ctx, w.lock(c.other, c.lock), c.lease)
	for !w.listens(locks[c.lock].name) {
		time.Sleep(time.Millisecond)
	}
	released := time.Now()
	outcome += w.describe(h.Unlock(ctx))
	o := <-done
	outcome += w.acquired(o.Hold, o.Err)
	outcome += fmt.Sprintf("told %t; ", o.At.Sub(released) < locktest.Missed)
	if o.Err == nil {
		outcome += w.describe(o.Hold.Unlock(ctx))
	}
	return outcome
}

// listens reports whether somebody waits for a lock.
func (w *world) listens(name string) bool {
	channels, err := w.do("PUBSUB", "CHANNELS", "redisson_*{"+name+"}*").AsStrSlice()
	if err != nil || len(channels) == 0 {
		return false
	}
	n, err := w.do("PUBSUB", "NUMSUB", channels[0]).ToArray()
	if err != nil || len(n) < 2 {
		return false
	}
	count, _ := n[1].AsInt64()
	return count > 0
}

func (w *world) do(args ...string) rueidis.RedisResult {
	return w.redis.Do(context.Background(), w.redis.B().Arbitrary(args...).Build())
}

// acquired records a hold, and describes the outcome of an acquisition.
func (w *world) acquired(h *rlock.Hold, err error) string {
	if err != nil {
		return w.describe(err)
	}
	w.holds = append(w.holds, h)
	if _, known := w.names[h.Owner()]; !known {
		w.names[h.Owner()] = len(w.holds) - 1
	}
	return fmt.Sprintf("acquired hold %d by %s, token %d; ", len(w.holds)-1, w.who(h.Owner()),
		h.Token())
}

// who returns the number of the first hold of an owner.
func (w *world) who(owner string) string {
	if n, known := w.names[strings.TrimSuffix(owner, ":write")]; known {
		return fmt.Sprintf("owner %d", n)
	}
	return "unknown " + fmt.Sprint(owner != "")
}

// describe returns what an error means to a caller.
func (w *world) describe(err error) string {
	if err == nil {
		return "ok; "
	}
	text := ""
	for _, class := range []struct {
		name string
		err  error
	}{
		{"ErrNotAcquired", rlock.ErrNotAcquired}, {"ErrNotHeld", rlock.ErrNotHeld},
		{"ErrLost", rlock.ErrLost}, {"ErrUpgrade", rlock.ErrUpgrade},
		{"ErrReentry", rlock.ErrReentry}, {"ErrInvalid", rlock.ErrInvalid},
		{"ErrReleased", rlock.ErrReleased}, {"ErrGone", rlock.ErrGone},
		{"ErrExpired", rlock.ErrExpired}, {"ErrOutcomeUnknown", rlock.ErrOutcomeUnknown},
	} {
		if errors.Is(err, class.err) {
			text += class.name + " "
		}
	}
	if text == "" {
		text = err.Error()
	}
	var held *rlock.HeldError
	if errors.As(err, &held) {
		text += fmt.Sprintf("%s next %t ttl %t", held.Lock, held.Next, held.TTL > time.Second)
		if held.Lock != "rw" { // any of several readers may be named
			text += " " + w.who(held.Owner)
		}
	}
	return text + "; "
}

func (w *world) info(l rlock.Locker) string {
	lock, ok := l.(*rlock.Lock)
	if !ok {
		return "not one lock"
	}
	info, err := lock.Info(context.Background())
	if err != nil {
		return w.describe(err)
	}
	text := fmt.Sprintf("%s locked %t count %d mode %q ttl %v queue %d token %d", info.Name,
		info.Locked, min(info.Count, 1), info.Mode, info.TTL.Round(time.Minute), len(info.Queue),
		info.Token)
	if len(info.Readers) == 0 {
		return fmt.Sprint(text, " ", w.who(info.Owner), " levels ", info.Count, "; ")
	}
	var readers []string
	for owner, levels := range info.Readers {
		readers = append(readers, fmt.Sprint(w.who(owner), " levels ", levels))
	}
	slices.Sort(readers)
	return fmt.Sprint(text, readers, "; ")
}

// vanish removes a lock, as if its lease had ended.
func (w *world) vanish(name string) string {
	keys, err := w.do("KEYS", "{"+name+"}:*:rwlock_timeout:*").AsStrSlice()
	if err != nil {
		return err.Error()
	}
	removed := 0
	for _, key := range append(keys, name) {
		n, err := w.do("PEXPIRE", key, "0").AsInt64()
		if err != nil {
			return err.Error()
		}
		removed += int(n)
	}
	return fmt.Sprint("removed ", removed, "; ")
}

// settled waits until what waiters leave behind is cleaned up, and describes all keys.
func (w *world) settled() string {
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		keys, err := w.do("KEYS", "*").AsStrSlice()
		if err != nil {
			return err.Error()
		}
		var described []string
		waiting := ""
		for _, key := range keys {
			switch {
			case strings.HasPrefix(key, "redisson_lock_queue"),
				strings.HasPrefix(key, "redisson_lock_timeout"),
				strings.HasPrefix(key, "holdfast_lock_waiters"):
				waiting = key
			case strings.HasPrefix(key, "holdfast_"): // lasts for a moment only
			default:
				kind, _ := w.do("TYPE", key).ToString()
				ttl, _ := w.do("PTTL", key).AsInt64()
				if prefix, _, ok := strings.Cut(key, ":rwlock_timeout:"); ok {
					_, owner, _ := strings.Cut(prefix, ":")
					key = strings.Replace(key, owner, w.who(owner), 1)
				}
				described = append(described, fmt.Sprintf("%s %s %v", key, kind,
					(time.Duration(ttl)*time.Millisecond).Round(time.Minute)))
			}
		}
		if waiting == "" {
			slices.Sort(described)
			return strings.Join(described, ", ")
		}
		if time.Now().After(late) {
			return "never cleaned up: " + waiting
		}
	}
}
