package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast/rlock"
)

// look is how often a process that waits asks whether it is in the queue.
const look = 10 * time.Millisecond

// reportQueued emits a queued event once Redis has this process in a queue: the locks promise something for those who come
// after that, not for those who asked at about the same time. stop ends the asking, and waits for its end.
func (w *worker) reportQueued(ctx context.Context) (stop func()) {
	if w.isIn == nil {
		return func() {}
	}
	enough, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(look)
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

// inQueue asks whether a fair lock's queue has an owner of this client. An error is a no: asking is repeated.
func inQueue(lock *rlock.Lock, client string) func(context.Context) bool {
	own := func(owner string) bool { return strings.HasPrefix(owner, client+":") }
	return func(ctx context.Context) bool {
		info, err := lock.Info(ctx)
		return err == nil && slices.ContainsFunc(info.Queue, own)
	}
}

// keepsReadersBack asks whether new readers step back for a writer of this client, by being one.
func keepsReadersBack(read *rlock.Lock, client string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		hold, err := read.TryLock(ctx, rlock.NoWait, patient)
		if err == nil {
			_ = hold.Unlock(ctx) // too early; should it fail, the lease ends
			return false
		}
		var held *rlock.HeldError
		return errors.As(err, &held) && held.Next && strings.HasPrefix(held.Owner, client+":")
	}
}
