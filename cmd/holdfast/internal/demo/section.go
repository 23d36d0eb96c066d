package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// section acquires the lock, does what only a lock makes safe, and releases it. To be too late for
// the lock is an outcome and no error.
func (w *worker) section(ctx context.Context, n int) error {
	w.emit(event{Kind: waiting})
	stop := w.reportQueued(ctx)
	work, hold, err := w.acquire(ctx)
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
	var sum int64
	found, err := w.enter(work)
	w.emit(event{Kind: entered, At: at, Owner: hold.Owner(), Found: found,
		Shared: w.part.Type == reading})
	if err == nil {
		found, sum, err = w.inside(work, w.part.NestEvery > 0 && n%w.part.NestEvery == 0)
	}
	last := event{Kind: leaving, Found: found, Sum: sum}
	if hold != nil {
		last.Until = w.clock.at(hold.Deadline())
	}
	w.emit(last)
	if hold != nil {
		err = errors.Join(err, hold.Unlock(ctx))
	}
	if err != nil {
		return err
	}
	w.emit(event{Kind: left})
	return nil
}

// inside is the section itself. It returns the name in the marker at the end, and the sum that a
// transfer found in its accounts.
func (w *worker) inside(ctx context.Context, nest bool) (found string, sum int64, err error) {
	if w.part.Type == reading {
		err = w.tally(ctx)
	} else {
		err = w.increment(ctx, nest)
	}
	if err == nil && w.part.Type == several {
		sum, err = w.transfer(ctx)
	}
	if err == nil {
		err = w.pause(ctx, w.part.Inside)
	}
	if err == nil {
		found, err = w.exit(ctx)
	}
	return found, sum, err
}

// acquire acquires the lock, unless the part leaves it out: then there is no hold.
func (w *worker) acquire(ctx context.Context) (work context.Context, h *rlock.Hold, err error) {
	if w.part.Unlocked {
		return ctx, nil, nil
	}
	hold, err := w.lock.TryLock(ctx, w.part.Wait, w.part.Lease)
	if err != nil {
		return nil, nil, err
	}
	return hold.Context(), hold, nil
}

// commandTimeout bounds a command and its retries: rueidis would retry on a dead server for ever.
const commandTimeout = 3 * time.Second

// thinking is about how long it takes to add one. It makes a lost update likely where no lock
// prevents it.
const thinking = 80 * time.Millisecond

func (w *worker) think(ctx context.Context) error {
	return w.pause(ctx, thinking/2+rand.N(thinking))
}

// increment adds one to the counter in the way that loses updates without a lock: it reads, takes
// its time, and writes. If nest is set it writes in a nested section.
func (w *worker) increment(ctx context.Context, nest bool) error {
	key := counterKey(w.part.Prefix, w.part.Lock)
	reading, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	count, err := w.redis.Do(reading, w.redis.B().Get().Key(key).Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return fmt.Errorf("read the counter: %w", err)
	}
	write := func(ctx context.Context) error {
		if err := w.think(ctx); err != nil {
			return err
		}
		next := strconv.FormatInt(count+1, 10)
		err := w.redis.Do(ctx, w.redis.B().Set().Key(key).Value(next).Ex(keyLife).Build()).Error()
		if err != nil {
			return fmt.Errorf("write the counter: %w", err)
		}
		return nil
	}
	if !nest || w.part.Unlocked {
		return write(ctx)
	}
	return w.nested(ctx, write)
}

// nested does work one level deeper. ctx carries the owner, so the lock is re-entered.
func (w *worker) nested(ctx context.Context, work func(context.Context) error) (err error) {
	hold, err := w.lock.TryLock(ctx, rlock.NoWait, w.part.Lease)
	if err != nil {
		return fmt.Errorf("re-enter: %w", err)
	}
	at := w.clock.now()
	defer func() {
		err = errors.Join(err, hold.Unlock(ctx))
		w.emit(event{Kind: unnested})
	}()
	count, err := w.levels(hold.Context()) //nolint:contextcheck // it derives from ctx
	if err != nil {
		return fmt.Errorf("count the levels: %w", err)
	}
	w.emit(event{Kind: nested, At: at, Count: count})
	return work(hold.Context()) //nolint:contextcheck // it derives from ctx
}

// tally adds one to the counter in the way that is safe among readers: by one command. It is lost
// if a writer is inside that has already read the counter and has yet to write it.
func (w *worker) tally(ctx context.Context) error {
	key := counterKey(w.part.Prefix, w.part.Lock)
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := w.redis.Do(ctx, w.redis.B().Incr().Key(key).Build()).Error(); err != nil {
		return fmt.Errorf("increment the counter: %w", err)
	}
	return w.limitLife(ctx, key)
}
