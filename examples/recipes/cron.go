package recipes

import (
	"context"
	"errors"
	"time"

	"holdfast/rlock"
)

func nightly(ctx context.Context, client *rlock.Client, job func(context.Context) error) error {
	lock := rlock.AtLeast(client.NewLock("nightly"), 10*time.Minute)
	err := rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, job)
	if errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired) {
		return nil // another pod is running or has run the job
	}
	return err
}
