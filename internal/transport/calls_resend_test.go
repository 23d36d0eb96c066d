package transport

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// A connection that was idle may have been closed long ago. Only then, nothing was executed.
func TestCommandWhoseConnectionIsLostIsSentAgainIfItMayBe(t *testing.T) {
	refused := &lua.Error{Class: lua.ClassTemporary, Message: "no connection"}
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
		"refused":            {Acquire, []error{refused, nil}, Refused, 1},
		"of another reason":  {Acquire, []error{lua.Classify(errors.New("hook"))}, Unconfirmed, 1},
	} {
		for how, send := range map[string]func(
			*testing.T, *Calls, func(context.Context) (int, error)) (State, error){
			"Do": func(t *testing.T, c *Calls, command func(context.Context) (int, error)) (State, error) {
				_, state, err := Do(c, of.kind, unlimited(t), command, nil)
				return state, err
			},
			"Detach": func(t *testing.T, c *Calls, command func(context.Context) (int, error),
			) (State, error) {
				_, state, err := Detach(c, of.kind, unlimited(t), 0,
					func(_ int, ctx context.Context) (int, error) { return command(ctx) }, nil)
				return state, err
			},
			"Again": func(_ *testing.T, c *Calls, command func(context.Context) (int, error),
			) (State, error) {
				_, err := Again(c, of.kind, command)
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
					if state > Refused {
						require.Equal(t, lua.ClassUnknown, lua.ClassOf(err))
					}
				})
			})
		}
	}
}
