package recipes

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestNightlyJobRunsOnOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		ran := 0
		takes := 15 * time.Minute
		job := func(ctx context.Context) error {
			ran++
			time.Sleep(takes)
			return context.Cause(ctx)
		}
		night := func() {
			var pods sync.WaitGroup
			for pod := range 3 {
				client := redis.NewClient(rlock.Options{})
				pods.Go(func() {
					time.Sleep(time.Duration(pod) * time.Minute) // its clock
					if err := nightly(t.Context(), client, job); err != nil {
						t.Error(err)
					}
				})
			}
			pods.Wait()
			time.Sleep(10 * time.Minute)
		}
		night()
		require.Equal(t, 1, ran)
		takes = time.Second // so that it is over before another pod begins
		night()
		require.Equal(t, 2, ran)
	})
}
