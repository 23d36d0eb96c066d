package recipes

import (
	"context"
	"errors"
	"log/slog"

	"holdfast/rlock"
)

// untilDone runs job under the lock, and again after each loss of the lock.
func untilDone(ctx context.Context, lock rlock.Locker, job func(context.Context) error) error {
	for {
		err := rlock.Do(ctx, lock, rlock.Forever, rlock.Watchdog, job)
		if ctx.Err() != nil || !errors.Is(err, rlock.ErrLost) {
			return err
		}
		slog.Warn("the job starts again", "error", err)
	}
}
