package transport

import (
	"context"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/redistest"
	"holdfast/internal/wait"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

var errLost = rediserr.Classify(io.EOF)

const timeout = 3 * time.Second

// inBubble runs a test with calls whose last command got its reply just now, and whose commands
// have overlapped before.
func inBubble(t *testing.T, test func(t *testing.T, c *Calls)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		defer group.Wait()
		c := NewCalls(group, timeout, nil)
		c.recordReply(nil, time.Now(), Executed)
		c.overlapped = true
		test(t, c)
	})
}

func unlimited(t *testing.T) *wait.Budget {
	return wait.NewBudget(t.Context(), nil, wait.Unlimited)
}

// hang is a command that never gets a reply, and that rueidis gives up when its context ends.
func hang(k *Call) error {
	_ = k.Err() // as rueidis does first
	<-k.Done()
	return rediserr.Classify(k.Err())
}

func TestCallerSendsItsCommandOnlyWhileRepliesCome(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		direct := func() bool {
			k := c.Begin(unlimited(t), time.Now(), "")
			if k != nil {
				_, _ = k.End(errLost)
				c.recordReply(nil, time.Now(), Executed)
			}
			return k != nil
		}
		require.True(t, direct())
		time.Sleep(recentReply)
		require.True(t, direct())
		time.Sleep(recentReply + 1)
		require.False(t, direct(), "the last reply was to a command of long ago")
		sent := time.Now()
		c.recordReply(nil, sent, Executed)
		time.Sleep(recentReply + 1)
		c.recordReply(nil, sent, Executed)
		require.False(t, direct(), "the time of sending counts")
		c.recordReply(nil, time.Now(), NotExecuted)
		require.True(t, direct(), "a refusal is a reply")
		c.recordReply(nil, time.Now(), Unconfirmed)
		require.False(t, direct(), "no reply has come")
		c.recordReply(nil, time.Now(), Executed)
		c.workersUntil.Store(math.MaxInt64)
		require.False(t, direct())
	})
}

func TestCommandsInFlightAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		var calls []*Call
		begin := func() *Call { return c.Begin(unlimited(t), time.Now(), "") }
		for k := begin(); k != nil; k = begin() {
			calls = append(calls, k)
		}
		require.Len(t, calls, mostUnderway)
		_, _ = calls[7].End(nil)
		calls[7] = c.Begin(unlimited(t), time.Now(), "")
		require.NotNil(t, calls[7])
		for _, k := range calls {
			_, _ = k.End(nil)
		}
		require.Zero(t, c.count)
	})
}

// A call returns when its time is over. If something else ends its budget it gives the server a
// moment to reply.
func TestCallEndsWithItsBudgetOrAfterTheTimeOut(t *testing.T) {
	const ends = 4*calmTick + calmTick/2 // it has been found slow by then
	const soon = ends + grace + 2*tick
	for name, of := range map[string]struct {
		begin       func(t *testing.T) *wait.Budget
		least, most time.Duration
	}{
		"the context is cancelled": {func(t *testing.T) *wait.Budget {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(ends, cancel)
			return wait.NewBudget(ctx, nil, wait.Unlimited)
		}, ends + grace, soon},
		"the deadline of the context": {func(t *testing.T) *wait.Budget {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return wait.NewBudget(ctx, nil, wait.Unlimited)
		}, time.Second, time.Second},
		"its own time": {func(t *testing.T) *wait.Budget {
			return wait.NewBudget(t.Context(), nil, time.Second)
		}, time.Second, time.Second},
		"the client closes": {func(t *testing.T) *wait.Budget {
			closing := make(chan struct{})
			time.AfterFunc(ends, func() { close(closing) })
			return wait.NewBudget(t.Context(), closing, wait.Unlimited)
		}, ends + grace, soon},
		"little time": {func(t *testing.T) *wait.Budget {
			return wait.NewBudget(t.Context(), nil, minBudget)
		}, minBudget, minBudget},
		"the time-out": {unlimited, timeout, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Calls) {
				_, _ = c.Begin(unlimited(t), time.Now(), "").End(nil) // sets the timer for later
				b, began := of.begin(t), time.Now()
				k := c.Begin(b, began, "")
				state, err := k.End(hang(k))
				took := time.Since(began)
				require.GreaterOrEqual(t, took, of.least)
				require.LessOrEqual(t, took, of.most)
				require.Equal(t, Abandoned, state)
				require.ErrorIs(t, err, ErrNoReply)
				require.NotErrorIs(t, err, context.DeadlineExceeded,
					"the deadline was not the caller's")
			})
		})
	}
}

func TestReplyWithinTheGraceCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		ctx, cancel := context.WithCancel(t.Context())
		k := c.Begin(wait.NewBudget(ctx, nil, wait.Unlimited), time.Now(), "")
		cancel()
		time.Sleep(grace - 1)
		require.NoError(t, k.Err())
		select {
		case <-k.Done():
			t.Error("ended")
		default:
		}
		state, err := k.End(nil)
		require.NoError(t, err)
		require.Equal(t, Executed, state)
	})
}

// All that need the connection share a dial. Before rueidis asks anything, a dial asks its context
// when it ends.
func TestCallerDoesNotDial(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		k := c.Begin(unlimited(t), time.Now(), "")
		_, err := (&net.Dialer{Timeout: time.Second}).DialContext(k, "tcp", "127.0.0.1:1")
		require.Error(t, err)
		<-k.Done()
		require.ErrorIs(t, k.Err(), context.Canceled)
		state, _ := k.End(rediserr.Classify(err))
		require.Equal(t, NotSent, state)
		require.Nil(t, c.Begin(unlimited(t), time.Now(), ""), "a worker must dial")

		c.recordReply(nil, time.Now(), Executed)
		k = c.Begin(unlimited(t), time.Now(), "")
		require.NoError(t, k.Err())
		state, _ = k.End(rediserr.Classify(context.Canceled))
		require.Equal(t, NotSent, state, "it has waited for the dial of another call")

		c.recordReply(nil, time.Now(), Executed)
		k = c.Begin(unlimited(t), time.Now(), "")
		require.NoError(t, k.Err())
		select {
		case <-k.Done():
			t.Error("ended")
		default:
		}
		_, _ = k.End(nil)
	})
}

func TestCallIsReusedUnlessItEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		b := unlimited(t)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			k := c.Begin(b, time.Now(), "")
			_ = k.Err() // as rueidis does first
			_, _ = k.End(nil)
		}))
		k := c.Begin(b, time.Now(), "")
		_, _ = k.End(hang(k))
		c.recordReply(nil, time.Now(), Executed)
		for range 10 {
			again := c.Begin(b, time.Now(), "")
			require.NotSame(t, k, again)
			require.NoError(t, again.Err())
			_, _ = again.End(nil)
		}
	})
}

// rueidis closes the connection at the deadline of a command that is alone on it.
func TestOnlyACallThatNothingElseEndsHasADeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		for _, of := range []struct {
			b   *wait.Budget
			has bool
		}{
			{wait.NewBudget(context.Background(), nil, wait.Unlimited), true},
			{wait.NewBudget(context.Background(), nil, timeout), true},
			{wait.NewBudget(context.Background(), nil, timeout-1), true},
			{wait.NewBudget(context.Background(), nil, timeout-grace), false},
			{wait.NewBudget(t.Context(), nil, wait.Unlimited), false},
		} {
			k := c.Begin(of.b, time.Now(), "")
			deadline, has := k.Deadline()
			require.Equal(t, of.has, has)
			if has {
				require.WithinDuration(t, time.Now().Add(timeout), deadline, grace)
			}
			require.Nil(t, k.Value(t))
			_, _ = k.End(nil)
		}
	})
}

func TestCallerThatWasDelayedIsTheLastToSendForAMinute(t *testing.T) {
	for _, late := range []bool{false, true} {
		inBubble(t, func(t *testing.T, c *Calls) {
			k := c.Begin(unlimited(t), time.Now(), "")
			time.Sleep(timeout)
			if late {
				time.Sleep(timeout/4 + 1)
			}
			_, _ = k.End(nil)
			direct := func() bool {
				c.recordReply(nil, time.Now(), Executed)
				k := c.Begin(unlimited(t), time.Now(), "")
				if k != nil {
					_, _ = k.End(nil)
				}
				return k != nil
			}
			require.Equal(t, !late, direct())
			time.Sleep(workersOnlyFor)
			require.True(t, direct())
		})
	}
}

type valueKey struct{}

// Hooks around rueidis may keep the context of a command, as those that log in the background do.
func TestContextThatAHookKeepsNeverHasTheValuesOfAnotherCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		var hooks sync.WaitGroup
		for i := range 1000 {
			ctx := context.WithValue(t.Context(), valueKey{}, i)
			c.recordReply(nil, time.Now(), Executed)
			k := c.Begin(wait.NewBudget(ctx, nil, wait.Unlimited), time.Now(), "")
			require.Equal(t, i, k.Value(valueKey{}))
			require.NoError(t, k.Err()) // as rueidis does first
			require.Nil(t, k.Value(valueKey{}))
			_, err := k.End(nil)
			require.NoError(t, err)
			hooks.Go(func() {
				if v := k.Value(valueKey{}); v != nil {
					t.Errorf("the call %d is over, and has the value %v", i, v)
				}
			})
		}
		hooks.Wait()
	})
}

func TestContextOfAWorkerForgetsTheCallersWhenTheCommandHasEnded(t *testing.T) {
	for _, closed := range []bool{false, true} {
		group := wait.NewGroup()
		c := NewCalls(group, timeout, func(context.Context) error { return nil })
		if closed {
			group.Wait() // the caller sends the command itself
		}
		kept := make(chan context.Context, 1)
		ctx := context.WithValue(t.Context(), valueKey{}, 7)
		value, _, err := SendByWorker(c, Acquire, wait.NewBudget(ctx, nil, wait.Unlimited), struct{}{},
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
