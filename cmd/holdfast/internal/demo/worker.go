package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/multilock"
	"holdfast/rlock"
)

// worker is a process that plays a part.
type worker struct {
	part  part
	redis rueidis.Client
	lock  rlock.Locker
	// held, according to Redis; nil if the part never nests
	levels func(context.Context) (int, error)
	// reports whether it is in a queue; nil if the lock has none
	isIn  func(context.Context) bool
	clock clock
	leave chan struct{} // closed by the cue to leave
	// of this process since the clock started
	stalls stalls

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
	w := &worker{out: json.NewEncoder(stdout), leave: make(chan struct{})}
	if err := in.Decode(&w.part); err != nil {
		return fmt.Errorf("worker: no part to play (`holdfast demo` starts workers): %w", err)
	}
	err := w.connectAndPlay(ctx, in)
	if err != nil {
		w.emit(event{Kind: failed, Error: err.Error()})
	}
	return err
}

func (w *worker) connectAndPlay(ctx context.Context, in *json.Decoder) error {
	redis, err := w.part.Server.connect(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	w.redis = redis
	client, err := rlock.New(redis, rlock.Options{
		WatchdogLease: w.part.WatchdogLease,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx)) //nolint:errcheck // there is no deadline
	w.open(client)
	if len(w.part.Nodes) > 0 {
		disconnect, err := w.openOverQuorum(ctx)
		if err != nil {
			return err
		}
		defer disconnect()
	}

	w.emit(event{Kind: ready})
	var first cue
	if err := in.Decode(&first); err != nil {
		return fmt.Errorf("wait for the beginning: %w", err)
	}
	w.clock = clockSince(first.Start)
	go w.listen(in)
	stop := make(chan struct{})
	defer close(stop)
	go w.stalls.watch(stop)
	for n := range w.part.Sections {
		if n > 0 {
			if err := w.pause(ctx, w.part.Outside); err != nil {
				return err
			}
		}
		if err := w.section(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// open makes the lock of the part.
func (w *worker) open(client *rlock.Client) {
	name := lockKey(w.part.Prefix, w.part.Lock)
	switch w.part.Type {
	case fair:
		lock := client.NewFairLock(name)
		w.lock = lock
		w.isIn = inQueue(lock, client.ID())
	case reading:
		w.lock = client.NewReadWriteLock(name).Read()
	case writing:
		pair := client.NewReadWriteLock(name)
		w.lock = pair.Write()
		w.isIn = keepsReadersBack(pair.Read(), client.ID())
	case several:
		var locks []rlock.Locker
		for _, account := range w.part.Accounts {
			// Plain ones would be acquired together by one script, and no order would matter.
			locks = append(locks, client.NewFairLock(accountKey(w.part.Prefix, account)))
		}
		w.lock = multilock.New(locks...)
	default:
		lock := client.NewLock(name)
		w.lock, w.levels = lock, lock.HoldCount
	}
}

// listen follows cues, and ends the process when its starter is gone.
func (w *worker) listen(in *json.Decoder) {
	for {
		var c cue
		if err := in.Decode(&c); err != nil {
			os.Exit(1)
		}
		if c.Do == leave {
			close(w.leave)
		}
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

// pause lasts for d. It is shorter if the cue to leave comes, and returns an error if ctx ends.
func (w *worker) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.leave:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
