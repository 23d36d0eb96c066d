package recipes

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestAnotherProcessLeadsWhenTheLeaderStopsOrLosesItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		leads := make(chan string)
		stand := func(name string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			client := redis.NewClient(rlock.Options{})
			go func() {
				defer close(ended)
				campaign(ctx, client, func(ctx context.Context) error {
					leads <- name
					<-ctx.Done()
					return nil
				})
			}()
			return func() { cancel(); <-ended }
		}
		stopA := stand("a")
		require.Equal(t, "a", <-leads)
		stopB := stand("b")
		synctest.Wait()
		redis.Lose("leader")
		require.Equal(t, "b", <-leads)
		synctest.Wait()
		stopB()
		require.Equal(t, "a", <-leads)
		stopA()
	})
}
