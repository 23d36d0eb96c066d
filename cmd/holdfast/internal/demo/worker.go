package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// worker is a process that plays a part.
type worker struct {
	part   part
	redis  rueidis.Client
	client *rlock.Client
	lock   rlock.Locker
	levels func(context.Context) (int, error) // held, according to Redis; nil if it never nests
	isIn   func(context.Context) bool         // whether it is in a queue; nil if the lock has none
	clock  clock
	cues   chan struct{} // one for each that has yet to end a pause
	stalls stalls        // of this process since the clock started

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// Work plays the part that it reads from stdin and reports events on stdout. It blocks until the
// part is over.
//
// It is made for a process of its own, and ends that process at once, with status 1, when stdin
// ends: then its starter is gone. An interrupt from the terminal is left to the starter as well.
func Work(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	signal.Ignore(os.Interrupt)
	in := json.NewDecoder(stdin)
	w := &worker{out: json.NewEncoder(stdout), cues: make(chan struct{}, 8)}
	if err := in.Decode(&w.part); err != nil {
		return fmt.Errorf("worker: no part to play (`holdfast demo` starts workers): %w", err)
	}
	err := w.connectAndPlay(ctx, in)
	if err != nil {
		w.emit(event{Kind: failed, Error: err.Error()})
	}
	return err
}

func (w *worker) connectAndPlay(ctx context.Context, in *json.Decoder) (err error) {
	var disconnect func()
	w.redis, w.client, disconnect, err = w.connect(ctx, w.part.Server)
	if err != nil {
		return err
	}
	defer disconnect()
	var nodes []*rlock.Client
	for _, node := range w.part.Nodes {
		_, client, disconnect, err := w.connect(ctx, node)
		if err != nil {
			return err
		}
		defer disconnect()
		nodes = append(nodes, client)
	}
	w.open(nodes)
	w.emit(event{Kind: ready, Owner: w.client.ID()})
	var start time.Time
	if err := in.Decode(&start); err != nil {
		return fmt.Errorf("wait for the beginning: %w", err)
	}
	w.clock = clockSince(start)
	go w.listen(in)
	stop := make(chan struct{})
	defer close(stop)
	go w.stalls.watch(stop)
	for _, s := range w.part.Sections {
		if err := w.pause(ctx, s.Before); err != nil {
			return err
		}
		if err := w.play(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// connect returns clients for one server.
func (w *worker) connect(
	ctx context.Context, s server,
) (redis rueidis.Client, client *rlock.Client, disconnect func(), err error) {
	redis, err = s.connect(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	handler := slog.Handler(slog.NewTextHandler(os.Stderr, nil))
	if len(w.part.Nodes) > 0 {
		handler = slog.DiscardHandler // no news that a server is dead; a lost lock is an error as well
	}
	client, err = rlock.New(redis, rlock.Options{
		WatchdogLease: w.part.WatchdogLease, Logger: slog.New(handler),
	})
	if err != nil {
		redis.Close()
		return nil, nil, nil, err
	}
	return redis, client, func() {
		_ = client.Close(context.WithoutCancel(ctx))
		redis.Close()
	}, nil
}

// open makes the lock of the part.
func (w *worker) open(nodes []*rlock.Client) {
	names, client := w.part.names(), w.client
	switch w.part.Type {
	case fair:
		lock := client.NewFairLock(names[0])
		w.lock = lock
		w.isIn = inQueue(lock, client.ID())
	case reading:
		w.lock = client.NewReadWriteLock(names[0]).Read()
	case writing:
		pair := client.NewReadWriteLock(names[0])
		w.lock = pair.Write()
		w.isIn = keepsReadersBack(pair.Read(), client.ID())
	case several:
		var locks []rlock.Locker
		for _, name := range names {
			// Plain ones would be acquired together by one script, and no order would matter.
			locks = append(locks, client.NewFairLock(name))
		}
		w.lock = multilock.New(locks...)
	case overQuorum:
		// A dead server stays dead here, so a restart can forget nothing. The embedded one could
		// not report its uptime either: it has no INFO server. A machine that runs all these
		// processes may reply later than a server of its own.
		options := redlock.Options{FsyncAlways: true, NodeTimeout: 50 * time.Millisecond}
		w.lock = redlock.NewOn(names[0], options, nodes...)
	default:
		lock := client.NewLock(names[0])
		w.lock, w.levels = lock, lock.HoldCount
	}
}

// inQueue returns a function that reports whether an owner of this client is in the queue of a fair
// lock. An error counts as no: it is asked again.
func inQueue(lock *rlock.Lock, client string) func(context.Context) bool {
	own := func(owner string) bool { return strings.HasPrefix(owner, client+":") }
	return func(ctx context.Context) bool {
		info, err := lock.Info(ctx)
		return err == nil && slices.ContainsFunc(info.Queue, own)
	}
}

// listen follows cues, and ends the process when its starter is gone.
func (w *worker) listen(in *json.Decoder) {
	for {
		var cue string
		if err := in.Decode(&cue); err != nil {
			os.Exit(1)
		}
		w.cues <- struct{}{}
	}
}

// emit reports an event, at the present time unless its time is set or the clock has not started.
func (w *worker) emit(e event) {
	if e.At == 0 && w.clock != (clock{}) {
		e.At = w.clock.now()
	}
	e.Process, e.Lock, e.Stall = w.part.Process, w.part.Lock, w.stalls.longest()
	w.mu.Lock()
	err := w.out.Encode(e)
	w.mu.Unlock()
	if err != nil {
		os.Exit(1) // the starter is gone
	}
}

// pause lasts for d, or until a cue. It returns an error if ctx ends.
func (w *worker) pause(ctx context.Context, d time.Duration) error {
	cue, timer := w.cues, (<-chan time.Time)(nil)
	if d != untilCue {
		cue, timer = nil, time.After(d)
	}
	select {
	case <-timer:
		return nil
	case <-cue:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
