package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// forever is the budget of a caller that nothing ends.
func forever() *wait.Budget {
	return wait.NewBudget(context.Background(), nil, wait.Unlimited)
}

func TestAsideWaitsUntilNoCommandIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		c.overlapped = false
		for name, end := range map[string]func() func(){
			"a caller's": func() func() {
				k := c.Begin(forever(), time.Now())
				require.NotNil(t, k)
				return func() { _, _ = k.End(nil) }
			},
			"a worker's": func() func() {
				reply := make(chan struct{})
				go func() {
					_, _, _ = detach(c, forever(), func(context.Context) (int, error) {
						<-reply
						return 0, nil
					}, nil)
				}()
				return func() { close(reply) }
			},
		} {
			c.heard(time.Now(), Executed) // so that callers may send
			ends, ran := end(), make(chan bool, 1)
			synctest.Wait()
			go func() { ran <- c.Aside(func(context.Context) {}) }()
			time.Sleep(100 * time.Millisecond)
			require.Empty(t, ran, name)
			ends()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.True(t, <-ran, name)
		}
		require.False(t, c.overlapped)
	})
}

func TestAsideGivesUpIfThereIsAlwaysACommandUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		c.overlapped = false
		k := c.Begin(forever(), time.Now())
		start := time.Now()
		require.False(t, c.Aside(func(context.Context) { t.Error("it overlaps") }))
		require.Equal(t, time.Second, time.Since(start))
		_, _ = k.End(nil)
	})
}

func TestAsideDoesNotWaitOnceCommandsHaveOverlapped(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		c.overlapped = true
		k, start := c.Begin(forever(), time.Now()), time.Now()
		require.True(t, c.Aside(func(context.Context) {
			other := c.Begin(forever(), time.Now())
			_, _ = other.End(nil)
		}))
		require.Zero(t, time.Since(start))
		_, _ = k.End(nil)
	})
}

// Longer than a moment would be the delay of a server that hangs.
func TestCommandsWaitForTheOneAsideForAMoment(t *testing.T) {
	for takes, overlaps := range map[time.Duration]bool{grace / 2: false, time.Minute: true} {
		inBubble(t, func(t *testing.T, c *Calls) {
			c.overlapped = false
			go c.Aside(func(context.Context) { time.Sleep(takes) })
			synctest.Wait()
			start := time.Now()
			k := c.Begin(forever(), start)
			require.Equal(t, min(takes, grace), time.Since(start))
			require.Equal(t, overlaps, c.overlapped)
			_, _ = k.End(nil)
			k = c.Begin(forever(), start)
			require.Equal(t, min(takes, grace), time.Since(start), "it waits once")
			_, _ = k.End(nil)
			time.Sleep(takes)
			synctest.Wait()
		})
	}
}

// rueidis lets callers wait for the dial of another, whatever their contexts say.
func TestCallersDoNotSendWhileAPatientCommandDials(t *testing.T) {
	for name, run := range map[string]func(*Calls, func(context.Context) error){
		"a worker's": func(c *Calls, command func(context.Context) error) {
			_, _, _ = detach(c, forever(),
				func(ctx context.Context) (int, error) { return 0, command(ctx) }, nil)
		},
		"that of Aside": func(c *Calls, command func(context.Context) error) {
			c.Aside(func(ctx context.Context) {
				for errors.Is(command(ctx), context.Canceled) {
					ctx.(*patient).renew() // as a worker does
				}
			})
		},
		"a cleanup's": func(c *Calls, command func(context.Context) error) {
			_, _ = Patiently(c, func(ctx context.Context) (int, error) { return 0, command(ctx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Calls) {
				c.overlapped = true
				sends := func() bool {
					c.heard(time.Now(), Executed)
					k := c.Begin(forever(), time.Now())
					if k == nil {
						return false
					}
					_, _ = k.End(nil)
					return true
				}
				// rueidis asks for Done first if it dials, and for Err first if it has a connection.
				steps, errs := make(chan func(context.Context)), make(chan error)
				kept := make(chan context.Context, 2) // a try each
				go run(c, func(ctx context.Context) error {
					kept <- ctx
					for {
						select {
						case step := <-steps:
							step(ctx)
						case err := <-errs:
							return err
						}
					}
				})
				steps <- func(ctx context.Context) { _, _ = ctx.Err(), ctx.Done() }
				synctest.Wait()
				require.True(t, sends(), "it has a connection")
				// The dial that it waited for was another's, who has left. It dials itself.
				errs <- context.Canceled
				steps <- func(ctx context.Context) { _, _ = ctx.Done(), ctx.Err() }
				synctest.Wait()
				require.False(t, sends(), "it dials")
				errs <- nil
				synctest.Wait()
				require.True(t, sends())
				_ = (<-kept).Done()
				require.True(t, sends(), "the command has ended")
			})
		})
	}
}
