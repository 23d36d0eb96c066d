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

func TestAttachWhoseReplyIsLostIsRepeatedOrUndone(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		lost    int
		refused string // after that
	}{
		"twice":                    {lost: 2},
		"always":                   {lost: 1000},
		"once, and then it is not": {lost: 1, refused: "-NOPERM not any more\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c, p := proxied(t, s, rlock.Options{})
			text, err := take(t, c.NewLock("order"), longLease).Detach()
			require.NoError(t, err)
			attach := loaded(t, s, "transfer.lua")
			p.CutReply(attach, of.lost)
			if of.refused != "" {
				p.Replace(attach, 1000, of.refused) // of what comes after that
			}
			hold, err := c.Attach(t.Context(), text, longLease)
			if of.lost == 2 {
				require.NoError(t, err)
				unlock(t, hold)
			} else {
				require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			}
			p.Pass()
			waitUntilFree(t, s, "order")
		})
	}
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
func TestLateGrantOfADetachedLockDoesNotFreeIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	rlock.Register(hold)
	text, err := hold.Detach()
	require.NoError(t, err)
	rlock.GrantLate(c, hold)
	closeClient(t, c) // ends all cleanups
	_, err = newClient(t, s, rlock.Options{}).Attach(t.Context(), text, longLease)
	require.NoError(t, err)
}

func TestDetachBesideANestedLockHasOneHolder(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	for i := range 1000 {
		ctx, lock := rlock.WithOwner(t.Context()), c.NewLock("order "+strconv.Itoa(i))
		outer := takeWith(ctx, t, lock, longLease)
		nested := inBackground(func() (*rlock.Hold, error) {
			return lock.TryLock(ctx, rlock.NoWait, longLease)
		})
		if i%2 == 0 {
			runtime.Gosched()
		}
		text, _ := outer.Detach()
		if inner := result(t, nested).Hold; inner != nil {
			require.False(t, text != "" && inner.Owner() == outer.Owner(), "it is detached and held")
			_ = inner.Unlock()
		}
		_ = outer.Unlock()
	}
}
