package rlock

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

var errUnanswered = &lua.Error{Class: lua.Unknown}

// flying is what boards of a client with others under way, whose answers come.
func flying() (*flights, *Client) {
	f := newFlights(3*time.Second, false)
	first := f.take()
	f.take() // remains under way
	f.land(first, nil)
	return f, &Client{closing: make(chan struct{})}
}

func TestCommandGoesTheDirectWayOnlyBesideOthersThatAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(3*time.Second, false)
		c := &Client{closing: make(chan struct{})}
		p := c.patience(context.Background(), unlimited)
		boards := func() bool {
			_, ok := f.board(p, time.Now())
			if ok {
				f.aloft.Add(-1) // as if it had never been
			}
			return ok
		}
		require.False(t, boards(), "nothing is under way")
		first := f.take()
		require.False(t, boards(), "nobody knows whether answers come")
		second := f.take()
		f.land(first, nil)
		require.True(t, boards())

		time.Sleep(fresh)
		require.True(t, boards())
		time.Sleep(time.Millisecond)
		require.False(t, boards(), "the last answer was to a command of long ago")
		f.take()
		f.land(second, nil)
		require.False(t, boards(), "what counts is when it was sent")
		f.land(f.take(), nil)
		require.True(t, boards())
		f.land(f.take(), &lua.Error{Class: lua.Permanent})
		require.True(t, boards(), "a refusal is an answer")
		f.land(f.take(), errUnanswered)
		require.False(t, boards(), "no answer has come")

		alone := newFlights(3*time.Second, false)
		alone.land(alone.take(), nil)
		_, ok := alone.board(p, time.Now())
		require.False(t, ok, "nothing else is under way")
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

// Its context has no deadline, because rueidis would close a connection that others share; it ends all the same.
func TestDirectWayEndsWithinTheTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := flying()
		p := c.patience(context.Background(), unlimited)
		var ended atomic.Int64
		for range 50 {
			began := time.Now()
			ctx, ok := f.board(p, began)
			require.True(t, ok)
			_, dated := ctx.Deadline()
			require.False(t, dated)
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
			"its context ended":       {lua.Classify(context.Canceled), true},
			"it was answered":         {nil, false},
			"it was refused":          {&lua.Error{Class: lua.Permanent}, false},
			"its connection was lost": {errUnanswered, false},
		} {
			f.land(f.take(), nil)
			sent := time.Now()
			_, ok := f.board(p, sent)
			require.True(t, ok, name)
			require.Equal(t, of.adrift, f.land(sent, of.err), name)
		}
	})
}

func TestCallerThatWasKeptTooLongIsTheLastToGoTheDirectWay(t *testing.T) {
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
			f.land(sent, lua.Classify(context.Canceled))
			f.land(f.take(), nil)
			_, ok = f.board(p, time.Now())
			require.Equal(t, !late, ok)
		})
	}
}

func TestNoCommandGoesTheDirectWayOfAClientThatHasNone(t *testing.T) {
	f := newFlights(time.Second, true)
	f.take()
	f.land(f.take(), nil)
	p := (&Client{}).patience(context.Background(), unlimited)
	_, ok := f.board(p, time.Now())
	require.False(t, ok)
}
