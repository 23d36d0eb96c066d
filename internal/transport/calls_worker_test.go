package transport

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
	"holdfast/lua"
)

func detach[T any](c *Calls, b *wait.Budget, command func(context.Context) (T, error),
	late func(T, error),
) (T, State, error) {
	return Detach(c, Acquire, b, struct{}{},
		func(_ struct{}, ctx context.Context) (T, error) { return command(ctx) },
		func(_ struct{}, value T, err error) { late(value, err) })
}

func TestWorkerSendsAgainWhenTheDialOfACallerHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		tries := 0
		value, state, err := detach(c, unlimited(t), func(context.Context) (int, error) {
			if tries++; tries == 1 {
				return 0, lua.Classify(context.Canceled)
			}
			return 7, nil
		}, nil)
		require.NoError(t, err)
		require.Equal(t, Executed, state)
		require.Equal(t, 7, value)
	})
}

func TestCallerOfAWorkerHasItsOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		value, state, err := detach(c, unlimited(t), func(ctx context.Context) (int, error) {
			require.Nil(t, ctx.Done())
			time.Sleep(time.Second)
			return 7, nil
		}, func(int, error) { t.Error("no caller left") })
		require.NoError(t, err)
		require.Equal(t, Executed, state)
		require.Equal(t, 7, value)

		for _, late := range []error{
			context.DeadlineExceeded, // the deadline of another command
			os.ErrDeadlineExceeded,   // rueidis did not wait for longer
		} {
			_, state, err = detach(c, unlimited(t), func(context.Context) (int, error) {
				return 0, lua.Classify(late)
			}, nil)
			require.Equal(t, Abandoned, state)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, ErrNoReply)
			require.Nil(t, c.Begin(unlimited(t), time.Now()), "no reply has come")
		}
	})
}

func TestCallerThatLeavesAWorkerGetsNothingAndLateIsCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		reason := errors.New("refused")
		var late []any
		began := time.Now()
		_, state, err := detach(c, wait.NewBudget(t.Context(), nil, time.Second),
			func(context.Context) (int, error) {
				time.Sleep(time.Minute)
				return 7, reason
			}, func(value int, err error) { late = append(late, value, err) })
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, Detached, state)
		require.ErrorIs(t, err, ErrNoReply)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []any{7, reason}, late)
	})
}
