package recipes

import (
	"context"
	"errors"
	"time"

	"holdfast/rlock"
)

func nightly(ctx context.Context, client *rlock.Client,
	job func(context.Context) error,
) (err error) {
	hold, err := client.NewLock("nightly").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil // another pod runs the job
	}
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	started, err := client.NewLock("nightly:started").
		TryLock(hold.Context(), rlock.NoWait, rlock.Lease(10*time.Minute))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil // another pod has run the job
	}
	if err != nil {
		return err
	}
	started.Leave() // taken for ten minutes, even after the job
	return job(hold.Context())
}
