package recipes

import (
	"context"
	"time"

	"holdfast/rlock"
)

func batch(stop context.Context, lock rlock.Locker, rows []string,
	write func(ctx context.Context, row string) error,
) (err error) {
	hold, err := lock.TryLock(rlock.WithGrace(stop, 10*time.Second), 3*time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	for _, row := range rows {
		if stop.Err() != nil {
			return context.Cause(stop) // SIGTERM
		}
		if !hold.Valid() {
			return rlock.ErrLost
		}
		if err := write(hold.Context(), row); err != nil {
			return err
		}
	}
	return nil
}
