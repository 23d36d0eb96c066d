package recipes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestJobOutlastsARestartOfRedis(t *testing.T) {
	for _, test := range []struct {
		name   string
		outage time.Duration
		forget bool // Redis loses its data
		begun  int  // how often the job begins
	}{
		{name: "shorter than the lease", outage: 10 * time.Second, begun: 1},
		{name: "longer than the lease", outage: time.Minute, begun: 2},
		{name: "without its data", outage: time.Second, forget: true, begun: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				redis := rlocktest.New(t)
				lock := redis.Client().NewLock("job")
				restarted := make(chan struct{})
				redis.Down() // before the job asks for its lock
				go func() {
					defer close(restarted)
					time.Sleep(test.outage)
					redis.Up()
					time.Sleep(time.Minute)
					if test.forget {
						redis.Lose("job")
					}
					redis.Down() // while the job runs
					time.Sleep(test.outage)
					redis.Up()
				}()
				begun := 0
				err := untilDone(t.Context(), lock,
					func(ctx context.Context) error {
						begun++
						select {
						case <-time.After(10 * time.Minute):
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
				require.NoError(t, err)
				require.Equal(t, test.begun, begun)
				<-restarted
			})
		})
	}
}
