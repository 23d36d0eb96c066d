package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
	"holdfast/rlock"
)

// ErrFailed is returned by a demo that ran to its end and did not go as promised. The faults have
// been printed.
var ErrFailed = errors.New("the demo did not go as promised")

// ErrNotJudged is returned if the machine stood still for too long each time that the demo was
// played: what went wrong may be due to that, and no two holds were valid at the same time.
var ErrNotJudged = errors.New("the demo was not judged: this machine is too busy")

// Options are the options of [Run].
type Options struct {
	// Redis is the server: host:port or a URL. Defaults to an embedded one.
	Redis string
	// Plain prints lines only, even on a terminal.
	Plain bool
	// Unlocked leaves out the lock of the counter, to show that the checks can fail.
	Unlocked bool
	// Output receives everything. If it is a terminal, it also shows the locks that are in Redis.
	Output *os.File
}

const (
	// limit ends a demo that hangs. A demo takes about eight seconds.
	limit = 30 * time.Second
	// times is how often the demo is played at most, while the machine stands still.
	times = 3
	// afterwards bounds the commands at the end. rueidis would retry on a dead server for ever.
	afterwards = 2 * time.Second
)

// Run plays the demo and prints its verdict as the last line. It blocks until the demo is over,
// about eight seconds, or until ctx ends. If something went wrong while the machine stood still, it
// says so and plays again, twice at most. No process, key or port is left in either case. It starts
// the running program again as "<program> worker", which must call [Work].
//
// It returns [ErrFailed] if a section overlapped with one that it should not, a waiter was
// overtaken in a queue, or a scene did not go as promised; [ErrNotJudged] if the machine stood
// still each time; ctx's error if ctx ended it; and any other error if the demo could not be
// played, such as when the server cannot be reached.
func Run(ctx context.Context, o Options) error {
	for n := 1; ; n++ {
		v, err := play(ctx, o)
		switch {
		case err != nil:
			return err
		case v.ok():
			return nil
		case !v.stoodStill():
			return ErrFailed
		}
		fmt.Fprintf(o.Output, "demo: not judged: this machine stood still for %s, and leases of %s "+
			"may end\n", brief(v.stall), brief(watchdogLease))
		if n == times {
			return ErrNotJudged
		}
	}
}

// play plays the demo once.
func play(ctx context.Context, o Options) (v verdict, err error) {
	program, err := os.Executable()
	if err != nil {
		return v, fmt.Errorf("find this program, to start it again: %w", err)
	}
	where, what := server{Address: o.Redis}, "Redis"
	if o.Redis == "" {
		e, err := startEmbedded()
		if err != nil {
			return v, err
		}
		defer e.Close()
		where, what = e.server(), "an embedded server"
	}
	redis, err := where.connect(ctx)
	if err != nil {
		return v, fmt.Errorf("%w (without --redis the demo brings a server of its own)", err)
	}
	defer redis.Close()

	prefix := "holdfast-demo:" + rand.Text()[:8] + ":"
	all := scenes(o.Unlocked)
	for _, s := range all {
		for i := range s.cast {
			s.cast[i].Prefix, s.cast[i].Server = prefix, where
		}
	}
	nodes, err := startNodes(all)
	if err != nil {
		return v, err
	}
	defer nodes.Close()
	if err := expire(ctx, redis, dataKey(prefix)); err != nil {
		return v, err
	}
	stage := stage{scenes: all, nodes: nodes}
	defer func() { cleanUp(ctx, redis, prefix, stage.clients, all) }()
	fmt.Fprintf(o.Output, "holdfast demo: locks on %s\n", what)
	for _, s := range all {
		fmt.Fprintf(o.Output, "  %-9s %s\n", s.lock, s.title)
	}
	node, err := nodes["node2"].server().connect(ctx) // one that does not die
	if err != nil {
		return v, err
	}
	defer node.Close()
	show, closeScreen := newScreen(ctx, o, []rueidis.Client{redis, node}, prefix)
	stage.tell = newStory(all, show).tell
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	history, err := stage.play(limited, program)
	closeScreen()
	if err != nil && !errors.Is(err, errTooLong) && !errors.Is(err, errStopped) {
		return v, err
	}
	count, countErr := counters(ctx, redis, prefix)
	v = judge(all, history, count)
	v.stall = max(v.stall, stage.stalls.longest())
	for _, err := range []error{err, countErr} {
		if err != nil {
			v.fault("%v", err)
		}
	}
	for _, fault := range v.faults {
		fmt.Fprintln(o.Output, "fault:", fault)
	}
	fmt.Fprintln(o.Output, v)
	return v, nil
}

// expire creates the hash of all counters and markers. It expires, should the demo not clean up.
func expire(ctx context.Context, redis rueidis.Client, key string) error {
	for _, r := range redis.DoMulti(ctx,
		redis.B().Hset().Key(key).FieldValue().FieldValue("made by", "holdfast demo").Build(),
		redis.B().Expire().Key(key).Seconds(60).Build()) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	return nil
}

// counters returns the sum of the counters of all scenes.
func counters(ctx context.Context, redis rueidis.Client, prefix string) (sum int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, afterwards)
	defer cancel()
	all, err := redis.Do(ctx, redis.B().Hgetall().Key(dataKey(prefix)).Build()).AsStrMap()
	if err != nil {
		return 0, fmt.Errorf("read the counters: %w", err)
	}
	for field, value := range all {
		if strings.HasPrefix(field, "counter ") {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the %s: %w", field, err)
			}
			sum += n
		}
	}
	return sum, nil
}

// cleanUp deletes all keys, even when ctx has ended. It sends one command per key, which works on a
// cluster too. A key that cannot be deleted expires.
func cleanUp(
	ctx context.Context, redis rueidis.Client, prefix string, clients []string, scenes []scene,
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	keys := map[string]bool{dataKey(prefix): true}
	for _, id := range clients {
		keys[lua.ClientKey(id)] = true
	}
	client, err := rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		defer client.Close(ctx) //nolint:errcheck // it holds no lock
	}
	for _, s := range scenes {
		for _, p := range s.cast {
			for _, name := range p.names() {
				keys[name] = true
				for _, related := range lua.Related(name) {
					keys[related] = true
				}
				if err == nil && p.Type == reading {
					// Each hold of a reader has a key of its own.
					_, _ = client.NewReadWriteLock(name).Read().ForceUnlock(ctx)
				}
			}
		}
	}
	for key := range keys {
		_ = redis.Do(ctx, redis.B().Del().Key(key).Build()).Error()
	}
}
