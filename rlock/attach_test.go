package rlock_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestAttachRefusesWhatDetachDoesNotReturn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	text, err := take(t, c.NewLock("order"), longLease).Detach()
	require.NoError(t, err)
	for _, wrong := range []string{"", "order", "holdfast:1", "holdfast:1:reentrant:0:owner",
		"holdfast:2" + strings.TrimPrefix(text, "holdfast:1"),
		strings.Replace(text, "reentrant", "readwrite", 1), strings.Replace(text, ":0:", ":x:", 1)} {
		_, err := c.Attach(t.Context(), wrong, longLease)
		require.ErrorIs(t, err, rlock.ErrInvalid, wrong)
	}
	_, err = c.Attach(t.Context(), text, 0)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	hold, err := c.Attach(t.Context(), text, longLease)
	require.NoError(t, err)
	unlock(t, hold)
}

func TestAttachIsRetriedWhenItsReplyIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	text, err := take(t, c.NewLock("order"), longLease).Detach()
	require.NoError(t, err)
	cut := p.CutReply(loaded(t, s, "attach.lua"), 2)
	hold, err := c.Attach(t.Context(), text, longLease)
	require.NoError(t, err)
	require.Equal(t, 2, cut.Done())
	unlock(t, hold)
	requireFree(t, s, "order")
}

func TestAttachWithoutAReplyIsUndone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{CommandTimeout: shortTimeout})
	text, err := take(t, c.NewLock("order"), longLease).Detach()
	require.NoError(t, err)
	p.CutReply(loaded(t, s, "attach.lua"), 1000)
	_, err = c.Attach(t.Context(), text, longLease)
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	p.Pass()
	waitUntilFree(t, s, "order")
}

// The reply that says so is lost, and the server refuses from then on.
func TestAttachThatMayHaveBeenExecutedIsUndoneWhenItIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	there := newClient(t, s, rlock.Options{})
	text, err := take(t, there.NewLock("order"), longLease).Detach()
	require.NoError(t, err)
	attach := loaded(t, s, "attach.lua")
	cut := p.CutReply(attach, 1)
	go func() {
		cut.Wait(t, 1)
		p.Reply(attach, 1000, "-NOPERM not any more\r\n")
	}()
	_, err = c.Attach(t.Context(), text, longLease)
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.ErrorContains(t, err, "NOPERM")
	waitUntilFree(t, s, "order")
}

func TestAttachWhileTheClientClosesLeavesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	there := newClient(t, s, rlock.Options{})
	for i := range 200 {
		c := newClient(t, s, rlock.Options{})
		unlock(t, take(t, c.NewLock("warm"), longLease))
		name := "order " + strconv.Itoa(i)
		text, err := take(t, there.NewLock(name), longLease).Detach()
		require.NoError(t, err)
		attached := inBackground(func() (*rlock.Hold, error) {
			return c.Attach(context.Background(), text, longLease)
		})
		for range i * 4 { // so that some replies arrive while the client closes
			runtime.Gosched()
		}
		closeClient(t, c)
		if result(t, attached).Err != nil && exists(s, name) {
			_, err := there.Attach(t.Context(), text, longLease)
			require.NoError(t, err, "it is held by a client that is closed")
		}
	}
}

// A release elsewhere granted the lock, which its caller had acquired by asking before the message.
func TestLateGrantOfALockThatWasLeftDoesNotFreeIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	left, detached := take(t, c.NewLock("left"), longLease), take(t, c.NewLock("detached"), longLease)
	rlock.Register(left)
	rlock.Register(detached)
	left.Leave()
	text, err := detached.Detach()
	require.NoError(t, err)
	rlock.GrantLate(c, left)
	rlock.GrantLate(c, detached)
	unlock(t, take(t, c.NewLock("warm"), longLease))
	closeClient(t, c) // ends all cleanups
	require.True(t, exists(s, "left"))
	_, err = newClient(t, s, rlock.Options{}).Attach(t.Context(), text, longLease)
	require.NoError(t, err)
}
