package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

const (
	// commandTimeout bounds a command and its retries: rueidis would retry on a dead server for ever.
	commandTimeout = 3 * time.Second

	// thinking is about how long it takes to add one. It makes a lost update likely where no lock
	// prevents it.
	thinking = 80 * time.Millisecond

	// queuePoll is how often a waiting process checks whether it is in the queue.
	queuePoll = 10 * time.Millisecond
)

// play acquires the lock, does what only a lock makes safe, and releases it. To be too late for the
// lock is an outcome and no error.
func (w *worker) play(ctx context.Context, s section) error {
	w.emit(event{Kind: waiting})
	stop := w.reportQueued(ctx)
	hold, err := w.lock.TryLock(ctx, w.part.Wait, w.part.Lease)
	at := w.clock.now()
	stop()
	var held *rlock.HeldError
	if errors.As(err, &held) {
		w.emit(event{Kind: gaveUp, Owner: held.Owner, TTL: held.TTL})
		return nil
	}
	if err != nil {
		return err
	}
	work := hold.Context()
	found, err := w.enter(work) //nolint:contextcheck // it derives from ctx
	w.emit(event{Kind: entered, At: at, Owner: hold.Owner(), Found: found,
		Shared: w.part.Type == reading})
	if err == nil {
		err = w.inside(work, s)
	}
	if err == nil {
		found, err = w.exit(work) //nolint:contextcheck // it derives from ctx
	}
	w.emit(event{Kind: leaving, Found: found, Until: w.clock.at(hold.Deadline())})
	if err = errors.Join(err, hold.Unlock(ctx)); err == nil {
		w.emit(event{Kind: left})
	}
	return err
}

// inside is what a process does under its lock.
func (w *worker) inside(ctx context.Context, s section) (err error) {
	switch count := "counter " + w.part.Lock; {
	case w.part.Type == reading:
		// One command is safe among readers. It is lost if a writer is inside that has already read
		// the counter and has yet to write it.
		err = w.do(ctx, w.redis.B().Hincrby().Key(w.data()).Field(count).Increment(1).Build()).Error()
	case s.Nest:
		err = w.nested(ctx, func(ctx context.Context) error { return w.increment(ctx, count) })
	default:
		err = w.increment(ctx, count)
	}
	if err == nil && w.part.Type == several {
		err = w.transfer(ctx)
	}
	if err == nil {
		err = w.pause(ctx, s.Inside)
	}
	return err
}

// increment adds one in the way that loses updates without a lock: it reads, takes its time, and
// writes.
func (w *worker) increment(ctx context.Context, field string) error {
	n, err := w.number(ctx, field)
	if err == nil {
		err = w.write(ctx, field, n+1)
	}
	return err
}

// transfer moves 1 from the first account to the second in the way that needs both locks. The sum of
// both is 0 unless another transfer is read halfway.
func (w *worker) transfer(ctx context.Context) error {
	from, to := "balance "+w.part.Accounts[0], "balance "+w.part.Accounts[1]
	a, err := w.number(ctx, from)
	b, err2 := w.number(ctx, to)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if a+b != 0 {
		return fmt.Errorf("found %d in both accounts together instead of 0", a+b)
	}
	if err := w.write(ctx, from, a-1); err != nil {
		return err
	}
	return w.write(ctx, to, b+1)
}

// nested does work one level deeper. ctx carries the owner, so the lock is re-entered.
func (w *worker) nested(ctx context.Context, work func(context.Context) error) (err error) {
	hold, err := w.lock.TryLock(ctx, rlock.NoWait, w.part.Lease)
	if err != nil {
		return fmt.Errorf("re-enter: %w", err)
	}
	defer hold.UnlockTo(ctx, &err)
	count, err := w.levels(hold.Context()) //nolint:contextcheck // it derives from ctx
	if err != nil {
		return fmt.Errorf("count the levels: %w", err)
	}
	if count != 2 {
		return fmt.Errorf("re-entered, but Redis has %d levels instead of 2", count)
	}
	w.emit(event{Kind: nested})
	return work(hold.Context()) //nolint:contextcheck // it derives from ctx
}

// data returns the key of a hash with everything that locks protect here, and with the markers of
// processes: who is inside, as the processes themselves report it. Processes write first and then
// look, so that of two that should not meet, one sees the other.
func (w *worker) data() string { return dataKey(w.part.Prefix) }

func dataKey(prefix string) string { return prefix + "data" }

func (w *worker) marker() string { return "inside " + w.part.Lock + " " }

// enter marks this process as being inside, and returns who is inside and should not be.
func (w *worker) enter(ctx context.Context) (found []string, err error) {
	cmd := w.redis.B().Hset().Key(w.data()).FieldValue().
		FieldValue(w.marker()+w.part.Process, w.part.Type)
	if err := w.do(ctx, cmd.Build()).Error(); err != nil {
		return nil, fmt.Errorf("set the marker: %w", err)
	}
	return w.others(ctx)
}

// exit removes the marker, and returns who is inside and should not be.
func (w *worker) exit(ctx context.Context) (found []string, err error) {
	found, err = w.others(ctx)
	if err != nil {
		return nil, err
	}
	cmd := w.redis.B().Hdel().Key(w.data()).Field(w.marker() + w.part.Process)
	if err := w.do(ctx, cmd.Build()).Error(); err != nil {
		return nil, fmt.Errorf("remove the marker: %w", err)
	}
	return found, nil
}

// others returns who else is inside. Readers ignore each other.
func (w *worker) others(ctx context.Context) (found []string, err error) {
	all, err := w.do(ctx, w.redis.B().Hgetall().Key(w.data()).Build()).AsStrMap()
	if err != nil {
		return nil, fmt.Errorf("look for markers: %w", err)
	}
	for field, lockType := range all {
		name, ok := strings.CutPrefix(field, w.marker())
		if ok && name != w.part.Process && (lockType != reading || w.part.Type != reading) {
			found = append(found, name)
		}
	}
	return found, nil
}

// number returns a number of the hash; 0 if it is not there.
func (w *worker) number(ctx context.Context, field string) (int64, error) {
	n, err := w.do(ctx, w.redis.B().Hget().Key(w.data()).Field(field).Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return 0, fmt.Errorf("read the %s: %w", field, err)
	}
	return n, nil
}

// write takes its time before it writes a number.
func (w *worker) write(ctx context.Context, field string, n int64) error {
	if err := w.pause(ctx, thinking/2+rand.N(thinking)); err != nil {
		return err
	}
	cmd := w.redis.B().Hset().Key(w.data()).FieldValue().
		FieldValue(field, strconv.FormatInt(n, 10))
	if err := w.do(ctx, cmd.Build()).Error(); err != nil {
		return fmt.Errorf("write the %s: %w", field, err)
	}
	return nil
}

func (w *worker) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return w.redis.Do(ctx, cmd)
}

// reportQueued emits a queued event once Redis has this process in a queue. The locks promise an
// order to contenders that come after that, not to those that ask at about the same time. stop ends
// the polling and waits for its end.
func (w *worker) reportQueued(ctx context.Context) (stop func()) {
	if w.isIn == nil {
		return func() {}
	}
	var poll sync.WaitGroup
	enough, cancel := context.WithCancel(ctx)
	poll.Go(func() {
		for w.pause(enough, queuePoll) == nil {
			if w.isIn(ctx) {
				w.emit(event{Kind: queued})
				return
			}
		}
	})
	return func() {
		cancel()
		poll.Wait()
	}
}

// keepsReadersBack returns a function that reports whether new readers step back for a writer of
// this client. It finds out by being a reader.
func keepsReadersBack(read *rlock.Lock, client string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		hold, err := read.TryLock(ctx, rlock.NoWait, longWait)
		if err == nil {
			_ = hold.Unlock(ctx) // too early; if it fails, the lease ends
			return false
		}
		var held *rlock.HeldError
		return errors.As(err, &held) && held.Next && strings.HasPrefix(held.Owner, client+":")
	}
}
