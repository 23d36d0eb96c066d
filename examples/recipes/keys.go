package recipes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"holdfast/rlock"
)

func consume(ctx context.Context, client *rlock.Client, keys <-chan string,
	handle func(ctx context.Context, key string) error,
) {
	var workers sync.WaitGroup
	for range 64 {
		workers.Go(func() {
			for key := range keys {
				lock := client.NewLock("event:" + key)
				err := rlock.Do(ctx, lock, time.Second, rlock.Watchdog,
					func(ctx context.Context) error { return handle(ctx, key) })
				if err != nil {
					slog.Error("event not handled", "key", key, "error", err)
				}
			}
		})
	}
	workers.Wait()
}
