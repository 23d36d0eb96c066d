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
				err := campaign(ctx, client, func(lead context.Context) error {
					leads <- name
					select {
					case <-ctx.Done():
						if lead.Err() != nil {
							t.Error("the last step has no time left")
						}
					case <-lead.Done():
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			return func() { cancel(); <-ended }
		}
		stopA := stand("a")
		require.Equal(t, "a", <-leads)
		stopB := stand("b")
		synctest.Wait()
		redis.Lose("billing")
		require.Equal(t, "b", <-leads)
		synctest.Wait()
		stopB()
		require.Equal(t, "a", <-leads)
		stopA()
	})
}
