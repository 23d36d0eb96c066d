package transport

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

type valueKey struct{}

// Hooks around rueidis may keep the context of a command, as those that log in the background do.
func TestContextThatAHookKeepsNeverHasTheValuesOfAnotherCaller(t *testing.T) {
	group := wait.NewGroup()
	defer group.Wait()
	c := NewCalls(group, timeout, false)
	c.heard(time.Now(), Executed)
	c.overlapped = true
	begin := func(of int) *Call {
		c.heard(time.Now(), Executed)
		ctx := context.WithValue(t.Context(), valueKey{}, of)
		k := c.Begin(wait.NewBudget(ctx, nil, wait.Unlimited), time.Now())
		require.Equal(t, of, k.Value(valueKey{}))
		return k
	}
	end := func(k *Call) {
		require.NoError(t, k.Err()) // as rueidis does first
		require.Nil(t, k.Value(valueKey{}))
		_, err := k.End(nil)
		require.NoError(t, err)
	}
	var hooks sync.WaitGroup
	for i := range 1000 {
		kept := begin(i)
		end(kept)
		hooks.Go(func() {
			if v := kept.Value(valueKey{}); v != nil {
				t.Errorf("the call %d is over, and has the value %v", i, v)
			}
		})
		end(begin(-i))
	}
	hooks.Wait()
}

func TestContextOfAWorkerForgetsTheCallersWhenTheCommandHasEnded(t *testing.T) {
	for _, closed := range []bool{false, true} {
		group := wait.NewGroup()
		c := NewCalls(group, timeout, true)
		if closed {
			group.Wait() // the caller sends the command itself
		}
		kept := make(chan context.Context, 1)
		ctx := context.WithValue(t.Context(), valueKey{}, 7)
		value, _, err := Detach(c, Acquire, wait.NewBudget(ctx, nil, wait.Unlimited), struct{}{},
			func(_ struct{}, ctx context.Context) (any, error) {
				kept <- ctx
				return ctx.Value(valueKey{}), nil
			}, func(struct{}, any, error) {})
		require.NoError(t, err)
		require.Equal(t, 7, value)
		require.Nil(t, (<-kept).Value(valueKey{}))
		if !closed {
			group.Wait()
		}
	}
}
