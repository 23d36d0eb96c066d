package recipes

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"

	"holdfast/rlock"
)

func eachTenant(ctx context.Context, client *rlock.Client, tenants []string,
	job func(ctx context.Context, tenant string) error,
) {
	var jobs sync.WaitGroup
	slots := make(chan struct{}, 50) // jobs at once in this pod
	for _, i := range rand.Perm(len(tenants)) {
		slots <- struct{}{}
		jobs.Go(func() {
			defer func() { <-slots }()
			lock := client.NewLock("tenant:" + tenants[i])
			err := rlock.Do(rlock.Detached(ctx), lock, rlock.NoWait, rlock.Watchdog,
				func(ctx context.Context) error { return job(ctx, tenants[i]) })
			busy := errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired)
			if err != nil && !busy {
				slog.Error("tenant not served", "tenant", tenants[i], "error", err)
			}
		})
	}
	jobs.Wait()
}
