package recipes

import (
	"context"
	"log/slog"
	"time"

	"holdfast/leader"
	"holdfast/rlock"
)

// campaign calls step in a loop, but only in one process at a time, until ctx ends.
func campaign(ctx context.Context, client *rlock.Client, step func(context.Context) error) error {
	options := leader.Options{
		Grace:     10 * time.Second, // for the last step, after SIGTERM
		OnElected: func(*rlock.Hold) { slog.Info("this process leads") },
	}
	return leader.Run(ctx, client.NewLock("billing"), options, func(lead context.Context) error {
		for ctx.Err() == nil && lead.Err() == nil {
			if err := step(lead); err != nil {
				return err
			}
		}
		return nil
	})
}
