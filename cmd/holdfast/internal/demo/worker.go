package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/leader"
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
	origin time.Time     // of all times
	cues   chan struct{} // one for each that has yet to end a pause
	stalls stalls        // of this process since the clock started
	out    *json.Encoder
}

// Work plays the part that it reads from stdin and reports events on stdout. It blocks until the
// part is over.
//
// It is made for a process of its own, whose end closes its connections. It ends that process at
// once when stdin ends: then its starter is gone. Interrupts are left to the starter as well.
func Work(ctx context.Context, stdin io.Reader, stdout io.Writer) (err error) {
	signal.Ignore(os.Interrupt)
	in := json.NewDecoder(stdin)
	w := &worker{out: json.NewEncoder(stdout), cues: make(chan struct{}, 8)}
	if err := in.Decode(&w.part); err != nil {
		return fmt.Errorf("read the part of this worker: %w; only holdfast demo may start a worker", err)
	}
	defer func() {
		if err != nil {
			w.emit(event{Kind: failed, Error: err.Error()})
		}
	}()
	var clients []*rlock.Client
	for _, s := range append(w.part.Nodes, w.part.Server) {
		redis, client, err := w.connect(ctx, s)
		if err != nil {
			return err
		}
		w.redis, w.client, clients = redis, client, append(clients, client)
	}
	w.lock = w.newLock(clients[:len(w.part.Nodes)])
	w.emit(event{Kind: ready, Client: w.client.ID()})
	var start time.Time
	if err := in.Decode(&start); err != nil {
		return err
	}
	w.origin = since(start)
	go w.listen(in)
	go w.stalls.watch(ctx)
	for _, s := range w.part.Sections {
		play := w.play
		if w.part.Type == onceKey {
			play = w.ask
		}
		if err := play(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// connect returns clients for one server.
func (w *worker) connect(ctx context.Context, s server) (rueidis.Client, *rlock.Client, error) {
	redis, err := s.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	options := rlock.Options{Label: w.part.Process,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if w.part.Nodes != nil { // no news that a server is dead; a lost lock is an error as well
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if w.part.Lease == rlock.Watchdog {
		options.WatchdogLease = watchdogLease
	}
	client, err := rlock.New(redis, options)
	return redis, client, err
}

// newLock returns the lock of the part.
func (w *worker) newLock(nodes []*rlock.Client) rlock.Locker {
	names := w.part.Names
	switch w.part.Type {
	case fair:
		return w.client.NewFairLock(names[0])
	case reading:
		return w.client.NewReadWriteLock(names[0]).Read()
	case writing:
		return w.client.NewReadWriteLock(names[0]).Write()
	case several:
		// Plain ones would be acquired together by one script, and no order would matter.
		return multilock.New(w.client.NewFairLock(names[0]), w.client.NewFairLock(names[1]))
	case overQuorum:
		// A dead server stays dead here, so a restart can forget nothing. A machine that runs all
		// these processes may reply later than a server of its own.
		return redlock.NewOn(names[0], redlock.Options{FsyncAlways: true, MaxLease: longWait,
			NodeTimeout: 50 * ms}, nodes...)
	default:
		return w.client.NewLock(names[0])
	}
}

// listen follows cues, and ends the process when its starter is gone.
func (w *worker) listen(in *json.Decoder) {
	for cue := ""; in.Decode(&cue) == nil; {
		w.cues <- struct{}{}
	}
	os.Exit(1)
}

// emit reports an event, at the present time unless its time is set or the clock has not started.
func (w *worker) emit(e event) {
	if e.At == 0 && !w.origin.IsZero() {
		e.At = time.Since(w.origin)
	}
	e.Process, e.Lock, e.Stall = w.part.Process, w.part.Lock, w.stalls.longest()
	e.Shared = w.part.Type == reading
	if err := w.out.Encode(e); err != nil {
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
	case <-cue:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// play acquires the lock for a section. To be too late is an outcome and no error.
func (w *worker) play(ctx context.Context, s section) error {
	if err := w.pause(ctx, s.Before); err != nil {
		return err
	}
	w.emit(event{Kind: waiting})
	if w.part.Type == leading {
		return w.lead(ctx, s)
	}
	hold, err := w.lock.TryLock(ctx, w.part.Wait, w.part.Lease)
	at := time.Since(w.origin)
	if held := new(rlock.HeldError); errors.As(err, &held) {
		w.emit(event{Kind: gaveUp, At: at, Owner: held.Owner, TTL: held.TTL})
		return nil
	} else if err != nil {
		return err
	}
	err = w.inside(hold, s, at)
	hold.UnlockTo(&err)
	if err == nil {
		w.emit(event{Kind: left})
	}
	return err
}

// lead stands for election, and stays under the lock as the leader.
func (w *worker) lead(ctx context.Context, s section) error {
	var hold *rlock.Hold
	var at time.Duration
	options := leader.Options{OnElected: func(h *rlock.Hold) { hold, at = h, time.Since(w.origin) }}
	err := leader.Run(ctx, w.lock, options,
		func(context.Context) error { return w.inside(hold, s, at) })
	if err == nil {
		w.emit(event{Kind: left})
	}
	return err
}

// inside does what only a lock makes safe.
func (w *worker) inside(hold *rlock.Hold, s section, at time.Duration) error {
	ctx := hold.Context()
	found, err := w.mark(ctx, true)
	w.emit(event{Kind: entered, At: at, Owner: hold.Owner(), Found: found})
	if err == nil {
		err = w.count(ctx, s.Nest)
	}
	if err == nil {
		err = w.pause(ctx, s.Inside)
	}
	if err == nil {
		found, err = w.mark(ctx, false)
	}
	w.emit(event{Kind: leaving, Found: found, Until: hold.Deadline().Sub(w.origin)})
	return err
}

// count adds one to the counter of the lock in the way that loses updates without a lock: it reads,
// takes its time, and writes. Readers add by one command, which is safe among them; it is lost if a
// writer is inside that has already read the counter and has yet to write it.
func (w *worker) count(ctx context.Context, nest bool) (err error) {
	field := "counter " + w.part.Lock
	if w.part.Type == reading {
		return w.data(ctx, "HINCRBY", field, "1").Error()
	}
	n, err := w.data(ctx, "HGET", field).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return err
	}
	if nest { // ctx carries the owner, so the lock is re-entered
		hold, err2 := w.lock.TryLock(ctx, rlock.NoWait, w.part.Lease)
		if err2 != nil {
			return fmt.Errorf("re-enter: %w", err2)
		}
		defer hold.UnlockTo(&err)
		ctx = hold.Context()
		if info, _ := w.client.NewLock(w.part.Names[0]).Info(ctx); info.Count != 2 {
			return fmt.Errorf("re-entered, but Redis has level %d instead of 2", info.Count)
		}
		w.emit(event{Kind: nested})
	}
	if err := w.pause(ctx, 40*ms+rand.N(80*ms)); err != nil {
		return err
	}
	return w.data(ctx, "HSET", field, strconv.FormatInt(n+1, 10)).Error()
}

// mark sets the marker of this process when it enters, or deletes it when it leaves. It returns who
// else is inside and should not be, as one of two that meet sees. Readers ignore each other.
func (w *worker) mark(ctx context.Context, enter bool) (found []string, err error) {
	marker := "inside " + w.part.Lock + " "
	if enter {
		err = w.data(ctx, "HSET", marker+w.part.Process, w.part.Type).Error()
	}
	all, err2 := w.data(ctx, "HGETALL").AsStrMap()
	for field, other := range all {
		name, ok := strings.CutPrefix(field, marker)
		if ok && name != w.part.Process && (other != reading || w.part.Type != reading) {
			found = append(found, name)
		}
	}
	if !enter {
		err = w.data(ctx, "HDEL", marker+w.part.Process).Error()
	}
	return found, errors.Join(err, err2)
}

// data sends a command for the hash with what locks protect.
func (w *worker) data(ctx context.Context, command string, args ...string) rueidis.RedisResult {
	return w.redis.Do(ctx, w.redis.B().Arbitrary(command).Keys(w.part.Data).Args(args...).Build())
}
