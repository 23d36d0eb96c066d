package transport

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

func detach[T any](c *Calls, b *wait.Budget, command func(context.Context) (T, error),
	late func(T, error),
) (T, State, error) {
	return SendByWorker(c, Acquire, b, struct{}{},
		func(_ struct{}, ctx context.Context) (T, error) { return command(ctx) },
		func(_ struct{}, value T, err error) { late(value, err) })
}

type command = func(context.Context) (int, error)

// sender is a way to send a command.
type sender func(t *testing.T, c *Calls, send command) (State, error)

func TestWorkerSendsAgainWhenTheDialOfACallerHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		tries := 0
		value, state, err := detach(c, unlimited(t), func(context.Context) (int, error) {
			tries++
			if tries == 1 {
				return 0, rediserr.Classify(context.Canceled)
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
				return 0, rediserr.Classify(late)
			}, nil)
			require.Equal(t, Abandoned, state)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, ErrNoReply)
			require.Nil(t, c.Begin(unlimited(t), time.Now(), ""), "no reply has come")
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
		require.Equal(t, CallerLeft, state)
		require.ErrorIs(t, err, ErrNoReply)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []any{7, reason}, late)
	})
}

// hanging begins commands of a kind that get no reply until it is closed.
func hanging(t *testing.T, c *Calls, kind Kind, n int, budget time.Duration) (
	sent *atomic.Int64, states chan State, replies chan struct{},
) {
	t.Helper()
	sent, states, replies = new(atomic.Int64), make(chan State, n), make(chan struct{})
	for range n {
		go func() {
			b := wait.NewBudget(t.Context(), nil, budget)
			_, state, err := SendByWorker(c, kind, b, 0, func(int, context.Context) (int, error) {
				sent.Add(1)
				<-replies
				return 0, nil
			}, func(int, int, error) {})
			if state == NotExecuted {
				assert.ErrorIs(t, err, ErrNotSent)
			}
			states <- state
		}()
	}
	synctest.Wait()
	return sent, states, replies
}

// rueidis's queue has room for 1024 commands. A caller that sends its command itself would be
// blocked by a full one. What is not sent in time never is: nobody wants what it would acquire.
func TestCommandsOfEachKindAreBounded(t *testing.T) {
	for kind, most := range map[Kind]int{
		Acquire: mostAcquiring, Renew: mostRenewing, Keep: mostKeeping, Apart: mostApart,
	} {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			c := NewCalls(group, time.Second, nil)
			sent, states, replies := hanging(t, c, kind, 2*most, time.Second)
			require.EqualValues(t, most, sent.Load())
			count := map[State]int{}
			for range 2 * most {
				count[<-states]++
			}
			close(replies)
			group.Wait()
			require.Equal(t, map[State]int{CallerLeft: most, NotExecuted: most}, count)
			require.EqualValues(t, most, sent.Load())
		})
	}
}

// Acquisitions that wait for replicas, for example, must not cost a lock that is held. Nor must
// releases on a connection that gives no reply.
func TestOneKindOfCommandsDoesNotDelayTheOthers(t *testing.T) {
	for _, kind := range []Kind{Renew, Keep, undo} {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			defer group.Wait()
			c := NewCalls(group, time.Second, nil)
			_, _, replies := hanging(t, c, Acquire, 2*mostAcquiring, wait.Unlimited)
			defer close(replies)
			_, _, apart := hanging(t, c, Apart, 2*mostApart, wait.Unlimited)
			defer close(apart)
			if kind == Renew {
				_, _, releases := hanging(t, c, Release, 2*mostKeeping, wait.Unlimited)
				defer close(releases)
			}
			if kind == undo {
				_, err := Undo(c, func(context.Context) (int, error) { return 0, nil })
				require.NoError(t, err)
			} else {
				_, _, err := Do(c, kind, unlimited(t),
					func(context.Context) (int, error) { return 0, nil }, nil)
				require.NoError(t, err)
			}
		})
	}
}

// A caller that finds rueidis's queue full is blocked, whatever its wait. By default it has 1024
// places, some of which the application and rueidis itself need.
func TestCommandsOfAllKindsFitIntoTheQueueOfRueidis(t *testing.T) {
	all := mostUnderway + mostAcquiring + mostRenewing + mostKeeping + mostUndoing
	require.Less(t, all, 1000)
}

// A connection that was idle may have been closed long ago. Only then, nothing was executed.
func TestCommandWhoseConnectionIsLostIsSentAgainIfItMayBe(t *testing.T) {
	refused := &rediserr.Error{Class: rediserr.ClassTemporary, Message: "no connection"}
	for name, of := range map[string]struct {
		kind     Kind
		outcomes []error // of the sends; the last one is repeated
		state    State
		sends    int
	}{
		"once":               {Acquire, []error{errLost, nil}, Executed, 2},
		"a renewal":          {Keep, []error{errLost, nil}, Executed, 2},
		"a release":          {Release, []error{errLost, nil}, Unconfirmed, 1},
		"always":             {Acquire, []error{errLost}, Unconfirmed, MostSends},
		"then not sent":      {Acquire, []error{errLost, refused}, Unconfirmed, 2},
		"then without reply": {Acquire, []error{errLost, ErrNoReply}, Abandoned, 2},
		"refused":            {Acquire, []error{refused, nil}, NotExecuted, 1},
		"of another reason":  {Acquire, []error{rediserr.Classify(errors.New("hook"))}, Unconfirmed, 1},
	} {
		for how, send := range map[string]sender{
			"Do": func(t *testing.T, c *Calls, send command) (State, error) {
				_, state, err := Do(c, of.kind, unlimited(t), send, nil)
				return state, err
			},
			"SendByWorker": func(t *testing.T, c *Calls, send command) (State, error) {
				_, state, err := SendByWorker(c, of.kind, unlimited(t), 0,
					func(_ int, ctx context.Context) (int, error) { return send(ctx) }, nil)
				return state, err
			},
			"DoWithoutCancel": func(_ *testing.T, c *Calls, send command) (State, error) {
				_, err := DoWithoutCancel(c, of.kind, send)
				return StateOf(err), err
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *Calls) {
					sends := 0
					state, err := send(t, c, func(ctx context.Context) (int, error) {
						_ = ctx.Err() // as rueidis does
						_ = ctx.Done()
						outcome := of.outcomes[min(sends, len(of.outcomes)-1)]
						sends++
						return 0, outcome
					})
					require.Equal(t, of.state, state, "%v", err)
					if how == "Do" && of.sends == MostSends {
						sends-- // the caller's own, before those of the worker
					}
					require.Equal(t, of.sends, sends)
					if state > NotExecuted {
						require.Equal(t, rediserr.ClassUnknown, rediserr.ClassOf(err))
					}
				})
			})
		}
	}
}

// forever is the budget of a caller that nothing ends.
func forever() *wait.Budget {
	return wait.NewBudget(context.Background(), nil, wait.Unlimited)
}

// rueidis lets callers wait for the dial of another, whatever their contexts say. It asks for Done
// first if it dials, and for Err first if it has a connection.
func TestCallersDoNotSendWhileACommandWithoutCancelDials(t *testing.T) {
	for name, run := range map[string]func(*Calls, command){
		"a worker's": func(c *Calls, send command) { _, _, _ = detach(c, forever(), send, nil) },
		"that of WhenIdle": func(c *Calls, send command) {
			c.WhenIdle(func(ctx context.Context) { _, _ = send(ctx) })
		},
		"a cleanup's": func(c *Calls, send command) { _, _ = Undo(c, send) },
	} {
		inBubble(t, func(t *testing.T, c *Calls) {
			sends := func() bool {
				c.recordReply(nil, time.Now(), Executed)
				k := c.Begin(forever(), time.Now(), "")
				if k != nil {
					_, _ = k.End(nil)
				}
				return k != nil
			}
			for _, dials := range []bool{false, true} {
				ended, kept := make(chan struct{}), make(chan context.Context, 1)
				go run(c, func(ctx context.Context) (int, error) {
					if !dials {
						_ = ctx.Err()
					}
					_ = ctx.Done()
					kept <- ctx
					<-ended
					return 0, nil
				})
				synctest.Wait()
				require.Equal(t, !dials, sends(), name)
				close(ended)
				synctest.Wait()
				_ = (<-kept).Done()
				require.True(t, sends(), "%s has ended", name)
			}
		})
	}
}

func TestCommandIsNotSentUnlessTheClusterIsReady(t *testing.T) {
	group := wait.NewGroup()
	defer group.Wait()
	notReady := &rediserr.Error{Class: rediserr.ClassTemporary, Message: "not ready"}
	c := NewCalls(group, timeout, func(context.Context) error { return notReady })
	send := func(context.Context) (int, error) {
		t.Error("sent")
		return 0, nil
	}
	_, state, err := Do(c, Acquire, forever(), send, nil)
	require.Equal(t, NotExecuted, state)
	require.ErrorIs(t, err, notReady)
	_, err = DoWithoutCancel(c, Acquire, send)
	require.ErrorIs(t, err, notReady)
}
