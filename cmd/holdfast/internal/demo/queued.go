package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast/rlock"
)

// queuePoll is how often a waiting process checks whether it is in the queue.
const queuePoll = 10 * time.Millisecond

// reportQueued emits a queued event once Redis has this process in a queue. The locks promise an
// order to contenders that come after that, not to those that ask at about the same time. stop ends
// the polling and waits for its end.
func (w *worker) reportQueued(ctx context.Context) (stop func()) {
	if w.isIn == nil {
		return func() {}
	}
	enough, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(queuePoll)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-enough:
				return
			}
			if w.isIn(ctx) {
				w.emit(event{Kind: queued})
				return
			}
		}
	}()
	return func() {
		close(enough)
		<-done
	}
}

// inQueue returns a function that reports whether an owner of this client is in the queue of a fair
// lock. An error counts as no: the poll is repeated.
func inQueue(lock *rlock.Lock, client string) func(context.Context) bool {
	own := func(owner string) bool { return strings.HasPrefix(owner, client+":") }
	return func(ctx context.Context) bool {
		info, err := lock.Info(ctx)
		return err == nil && slices.ContainsFunc(info.Queue, own)
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
