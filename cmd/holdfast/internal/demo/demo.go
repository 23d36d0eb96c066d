// Package demo plays seven scenes with locks in several processes, tells what happens, and judges
// it.
//
// [Run] starts one process per part, sends each its part and its cues on standard input, and reads
// its events from its standard output. [Work] is what such a process runs.
//
// No process outlives the demo: each ends when its standard input does. Begin to read at scene.go.
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

	"holdfast/internal/wire"
	"holdfast/rlock"
)

// ErrFailed is returned by a demo that did not go as promised. The faults have been printed.
var ErrFailed = errors.New("the demo did not go as promised")

// ErrNotJudged is returned if the machine stood still for too long each time that the demo was
// played: what went wrong may be due to that, and no two holds were valid at the same time.
var ErrNotJudged = errors.New("the demo has no result, because this machine is too busy; " +
	"run the demo again")

// Options are the options of [Run].
type Options struct {
	Redis    string   // the server: host:port or a URL; an embedded one by default
	Plain    bool     // prints lines only, even on a terminal
	Unlocked bool     // leaves out the lock of the counter, to show that the checks can fail
	Output   *os.File // receives everything; a terminal shows the locks in Redis as well
}

const (
	limit      = 30 * time.Second // ends a demo that hangs
	plays      = 3                // at most, while the machine stands still
	afterwards = 2 * time.Second  // for the last commands: rueidis retries on a dead server for ever
)

// Run plays the demo and prints its verdict as the last line. It blocks until the demo is over,
// about eight seconds, or until ctx ends. If something went wrong while the machine stood still, it
// says so and plays again, twice at most. It leaves no process, key or port. It starts the running
// program again as "<program> worker", which must call [Work]. The error is [ErrFailed],
// [ErrNotJudged], ctx's, or why the demo could not be played.
func Run(ctx context.Context, o Options) error {
	for range plays {
		v, err := play(ctx, o)
		switch {
		case err != nil:
			return err
		case v.ok():
			return nil
		case !v.stoodStill():
			return ErrFailed
		}
		fmt.Fprintf(o.Output, "demo: no result, because this machine stood still for %s, so leases of "+
			"%s may have ended\n", brief(v.stall), brief(watchdogLease))
	}
	return ErrNotJudged
}

// play plays the demo once.
func play(ctx context.Context, o Options) (v verdict, err error) {
	where := server{Address: o.Redis}
	if o.Redis == "" {
		var e *embedded
		e, where, err = startEmbedded()
		if err != nil {
			return v, err
		}
		defer e.Close()
	}
	redis, err := where.connect(ctx)
	if err != nil {
		return v, fmt.Errorf("%w; leave out --redis to use the embedded server of the demo", err)
	}
	defer redis.Close()
	prefix := "holdfast-demo:" + rand.Text()[:8] + ":"
	all := scenes(prefix, where, o.Unlocked)
	nodes := nodes{}
	defer nodes.Close()
	if err := nodes.start(all); err != nil {
		return v, err
	}
	stage := stage{scenes: all, redis: redis, nodes: nodes}
	defer func() { cleanUp(ctx, redis, prefix, &stage) }()
	data := prefix + "data"
	for _, r := range redis.DoMulti(ctx, // the hash expires, should the demo not clean up
		redis.B().Arbitrary("HSET").Keys(data).Args("made by", "holdfast demo").Build(),
		redis.B().Expire().Key(data).Seconds(60).Build()) {
		if r.Error() != nil {
			return v, r.Error()
		}
	}
	fmt.Fprintln(o.Output, "holdfast demo")
	for _, s := range all {
		fmt.Fprintf(o.Output, "  %-9s %s\n", s.lock, s.title)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	stage.screen = newScreen(o)
	stage.story = newStory(all, stage.screen.print)
	history, err := stage.play(limited)
	stage.screen.close()
	if err != nil && !errors.Is(err, errTooLong) && !errors.Is(err, errStopped) {
		return v, err
	}
	count, err2 := counters(ctx, redis, data)
	v = judge(all, history, count)
	v.stall = max(v.stall, stage.stalls.longest())
	err = errors.Join(err, err2)
	if err != nil {
		v.fault("%v", err)
	}
	for _, fault := range v.faults {
		fmt.Fprintln(o.Output, "fault:", fault)
	}
	fmt.Fprintln(o.Output, v)
	return v, nil
}

// counters returns the sum of the counters of all scenes.
func counters(ctx context.Context, redis rueidis.Client, data string) (sum int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, afterwards)
	defer cancel()
	all, err := redis.Do(ctx, redis.B().Hgetall().Key(data).Build()).AsStrMap()
	if err != nil {
		return 0, fmt.Errorf("read the counters: %w", err)
	}
	for field, text := range all {
		if n, _ := strconv.ParseInt(text, 10, 64); strings.HasPrefix(field, "counter ") {
			sum += n
		}
	}
	return sum, nil
}

// cleanUp deletes all keys, even when ctx has ended. It has a command per key, which works on a
// cluster too. All commands are sent together, so that a distant server deletes the keys in time.
func cleanUp(ctx context.Context, redis rueidis.Client, prefix string, s *stage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	client, err := rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return
	}
	defer client.Close(ctx) //nolint:errcheck // it holds no lock
	keys := []string{prefix + "data"}
	for id, p := range s.clients {
		keys = append(keys, wire.ClientKey(id))
		for _, name := range p.Names {
			keys = append(append(keys, name), wire.Related(name)...)
			if p.Type == reading {
				// Each hold of a reader has a key of its own.
				_, _ = client.NewReadWriteLock(name).Read().ForceUnlock(ctx)
			}
		}
	}
	var commands rueidis.Commands
	for _, key := range keys {
		commands = append(commands, redis.B().Del().Key(key).Build())
	}
	redis.DoMulti(ctx, commands...)
}
