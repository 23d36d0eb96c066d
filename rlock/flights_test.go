package rlock

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

var errUnanswered = &lua.Error{Class: lua.Unknown}

// flying is what boards of a client whose commands are answered.
func flying() (*flights, *Client) {
	f := newFlights(3*time.Second, false)
	f.land(time.Now(), nil)
	return f, &Client{closing: make(chan struct{})}
}

func TestCommandGoesTheDirectWayOnlyWhileAnswersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(3*time.Second, false)
		c := &Client{closing: make(chan struct{})}
		p := c.patience(context.Background(), unlimited)
		boards := func() bool {
			_, ok := f.board(p, time.Now())
			return ok
		}
		require.False(t, boards(), "nobody knows whether answers come")
		first, second := time.Now(), time.Now()
		f.land(first, nil)
		require.True(t, boards())

		time.Sleep(fresh)
		require.True(t, boards())
		time.Sleep(time.Millisecond)
		require.False(t, boards(), "the last answer was to a command of long ago")
		f.land(second, nil)
		require.False(t, boards(), "what counts is when it was sent")
		f.land(time.Now(), nil)
		require.True(t, boards())
		f.land(time.Now(), &lua.Error{Class: lua.Permanent})
		require.True(t, boards(), "a refusal is an answer")
		f.land(time.Now(), errUnanswered)
		require.False(t, boards(), "no answer has come")
	})
}

func TestCallerThatMayLeaveDoesNotGoTheDirectWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := flying()
		now := time.Now()
		cancellable, cancel := context.WithCancel(context.Background())
		defer cancel()
		for name, of := range map[string]struct {
			ctx   context.Context
			limit time.Duration
			ok    bool
		}{
			"without a limit":             {context.Background(), unlimited, true},
			"with that of a command":      {context.Background(), 3 * time.Second, true},
			"with a shorter one":          {context.Background(), 2 * time.Second, false},
			"with a context that may end": {cancellable, unlimited, false},
			"with values in a context":    {context.WithValue(context.Background(), t, t), unlimited, true},
			"with both":                   {cancellable, 3 * time.Second, false},
		} {
			p := c.patience(of.ctx, of.limit)
			_, ok := f.board(p, now)
			require.Equal(t, of.ok, ok, name)
			p.stop()
		}
	})
}

// The context has to have a deadline: it is all that rueidis looks at while a command is alone on its connection.
func TestDirectWayEndsWithinTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := flying()
		p := c.patience(context.Background(), unlimited)
		var ended atomic.Int64
		for range 50 {
			began := time.Now()
			ctx, ok := f.board(p, began)
			require.True(t, ok)
			deadline, _ := ctx.Deadline()
			require.LessOrEqual(t, deadline.Sub(began), f.timeout)
			context.AfterFunc(ctx, func() {
				ended.Add(1)
				require.LessOrEqual(t, time.Since(began), f.timeout)
				require.GreaterOrEqual(t, time.Since(began), f.timeout*15/16)
			})
			f.land(began, nil)
			time.Sleep(40 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(f.timeout)
		synctest.Wait()
		require.EqualValues(t, 50, ended.Load())
	})
}

func TestCommandsThatBeginTogetherShareAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := flying()
		p := c.patience(context.Background(), unlimited)
		first, _ := f.board(p, time.Now())
		second, _ := f.board(p, time.Now())
		require.Same(t, first, second)
		require.Zero(t, testing.AllocsPerRun(100, func() { f.board(p, time.Now()) }))
		time.Sleep(3 * time.Second / 16)
		f.land(time.Now(), nil)
		third, ok := f.board(p, time.Now())
		require.True(t, ok)
		require.NotSame(t, first, third)
	})
}

// It may be executed still, and nobody hears of that.
func TestDirectCommandThatWasLeftIsAdrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := flying()
		p := c.patience(context.Background(), unlimited)
		for name, of := range map[string]struct {
			err    error
			adrift bool
		}{
			"its context ended":       {lua.Classify(context.DeadlineExceeded), true},
			"rueidis did not wait":    {lua.Classify(os.ErrDeadlineExceeded), true},
			"it was answered":         {nil, false},
			"it was refused":          {&lua.Error{Class: lua.Permanent}, false},
			"its connection was lost": {errUnanswered, false},
		} {
			f.land(time.Now(), nil)
			sent := time.Now()
			_, ok := f.board(p, sent)
			require.True(t, ok, name)
			require.Equal(t, of.adrift, f.landDirect(sent, of.err), name)
		}
	})
}

// Whoever hears of it would take it for the end of their own context.
func TestDeadlineOfAnotherCommandIsNotTold(t *testing.T) {
	require.NoError(t, unexplained(nil))
	require.Equal(t, errUnanswered, unexplained(errUnanswered))
	refusal := &lua.Error{Class: lua.Permanent}
	require.Equal(t, refusal, unexplained(refusal))
	err := unexplained(lua.Classify(context.DeadlineExceeded))
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, lua.Unknown, lua.ClassOf(err))
}

func TestCallerThatWasKeptTooLongIsTheLastToGoTheDirectWayForAMinute(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, c := flying()
			p := c.patience(context.Background(), unlimited)
			sent := time.Now()
			_, ok := f.board(p, sent)
			require.True(t, ok)
			time.Sleep(f.timeout)
			if late {
				time.Sleep(f.timeout/4 + 1)
			}
			f.landDirect(sent, nil)
			f.land(time.Now(), nil)
			_, ok = f.board(p, time.Now())
			require.Equal(t, !late, ok)
			time.Sleep(rest)
			f.land(time.Now(), nil)
			_, ok = f.board(p, time.Now())
			require.True(t, ok)
		})
	}
}

func TestNoCommandGoesTheDirectWayOfAClientThatHasNone(t *testing.T) {
	f := newFlights(time.Second, true)
	f.land(time.Now(), nil)
	p := (&Client{}).patience(context.Background(), unlimited)
	_, ok := f.board(p, time.Now())
	require.False(t, ok)
}
