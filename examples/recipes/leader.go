package recipes

import (
	"context"
	"log/slog"
	"time"

	"holdfast/rlock"
)

// campaign calls lead whenever this process becomes the leader, until ctx ends.
func campaign(ctx context.Context, client *rlock.Client, lead func(context.Context) error) {
	for ctx.Err() == nil {
		err := rlock.Do(ctx, client.NewLock("leader"), rlock.Forever, rlock.Watchdog, lead)
		slog.Info("not the leader", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
