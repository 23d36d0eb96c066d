package suite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/printable"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Errors: which error comes of which outcome, and what it says.
var errorsOf = []Promise{
	{
		Name: "a held lock is a HeldError that has its holder and what is left of the lease",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Lease(time.Minute))
			e.everywhere(t, k, "lock")
			for _, asked := range []*Party{p, e.Party(t)} {
				_, err := k.New(asked, "lock").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
				held := heldError(t, err)
				if k.Name != "redlock" { // whose owner is of one client, whichever node is asked
					require.Equal(t, asked == p, held.SameClient)
				}
				require.True(t, held.SameProcess)
				require.False(t, held.Next)
				require.InDelta(t, time.Minute, held.TTL, float64(10*time.Second))
				if k.Name == "multilock" {
					continue // its owner is that of its parts
				}
				if k.Name != "redlock" {
					require.Equal(t, hold.Owner(), held.Owner)
					require.ErrorContains(t, err,
						"; retry later, or use a longer wait; if one of your callers holds it, ")
				}
				require.ErrorContains(t, err, held.Owner)
			}
		},
	},
	{
		Name: "a holder of another process is named, with advice that fits its lease",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			e.plant(t, k, "lock", "another:7")
			_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			held := heldError(t, err)
			require.Equal(t, "another:7", held.Owner)
			require.Equal(t, rlock.NoExpiry, held.TTL)
			require.False(t, held.SameProcess)
			if k.Name != "redlock" {
				require.ErrorContains(t, err, `lock "`+k.key("lock")+`": not acquired: held by `+
					`another:7, and never expires; find out who wrote the key, and if it is a lock, `+
					`release it with "holdfast unlock"`)
			}
			for _, server := range e.Servers {
				for _, key := range server.Keys(t) {
					server.Do(t, "PEXPIRE", key, "30000")
				}
			}
			_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.InDelta(t, 30*time.Second, heldError(t, err).TTL, float64(5*time.Second))
			require.Regexp(t, `held by another:7 for another (2\d(\.\d+)?|30)s`, err.Error())
			if k.Name != "redlock" {
				require.ErrorContains(t, err, "; retry later, or use a longer wait")
			}
		},
	},
	{
		Name:  "a context that ends a wait is in the error, beside the holder",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Lease(time.Minute))
			e.settle()
			late, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := k.New(p, "lock").Lock(late, rlock.Watchdog)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.InDelta(t, time.Minute, heldError(t, err).TTL, float64(10*time.Second))
			require.ErrorContains(t, err, "context deadline exceeded: ")

			left, leave := context.WithCancelCause(t.Context())
			done := e.waiter(left, t, k.New(p, "lock"))
			leave(errWork)
			err = locktest.Result(t, done).Err
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errWork)
			heldError(t, err)

			_, err = k.New(p, "lock").TryLock(t.Context(), 300*time.Millisecond, rlock.Watchdog)
			heldError(t, err)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "its time was over")
			locktest.Unlock(t, hold)
		},
	},
	{
		Name: "a key that is no lock is a permanent ServerError at once, and stays as it is",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			e.doAll(t, "SET", k.key("lock"), "not a lock")
			_, err := lock.Lock(t.Context(), rlock.Watchdog)
			refusal := new(rlock.ServerError)
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, "WRONGTYPE", refusal.Code)
			require.Equal(t, rlock.ClassPermanent, refusal.Class)
			require.NotEmpty(t, refusal.Advice)
			require.ErrorContains(t, err, refusal.Advice)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
			requireOnePrefix(t, err)
			require.Equal(t, "not a lock", e.Servers[0].Do(t, "GET", k.key("lock")))
		},
	},
	{
		Name:  "a server that does not reply leaves the outcome unknown, and all is undone",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.CommandTimeout = 200 * time.Millisecond })
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Minute))
			for _, server := range e.Servers {
				server.Pause(t)
			}
			_, err := k.New(p, "another").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			requireOnePrefix(t, err)
			if k.Name != "redlock" { // which has no quorum
				require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
				refusal := new(rlock.ServerError)
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, rlock.ClassUnknown, refusal.Class)
			}
			err = hold.Unlock()
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, rlock.ErrLost)
			requireOnePrefix(t, err)
			for _, server := range e.Servers {
				server.Resume(t)
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "Unlock of a lost hold returns a LostError with the reason, and so does its context",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for _, c := range []struct {
				reason error
				lease  rlock.Lease
				lose   func(*rlock.Hold)
				found  bool // by the release only
			}{
				{rlock.ErrExpired, rlock.Lease(time.Second), func(h *rlock.Hold) {
					locktest.Receive(t, h.Done(), "its lease does not end")
				}, false},
				{rlock.ErrForced, rlock.Lease(time.Minute),
					func(*rlock.Hold) { forceUnlock(t, p, k, "lock") }, false},
				{rlock.ErrGone, rlock.Lease(time.Minute), func(*rlock.Hold) {
					e.settle() // until all masters have it
					e.doAll(t, "DEL", k.key("lock"))
				}, true},
			} {
				hold, err := k.New(p, "lock").TryLock(t.Context(), 10*time.Second, c.lease)
				require.NoError(t, err)
				if c.lose(hold); !c.found {
					require.ErrorIs(t, hold.Err(), c.reason)
					require.Equal(t, hold.Err(), context.Cause(hold.Context()))
				}
				err = hold.Unlock()
				require.ErrorIs(t, err, rlock.ErrLost)
				require.ErrorIs(t, err, c.reason)
				requireOnePrefix(t, err)
				lost := new(rlock.LostError)
				require.ErrorAs(t, err, &lost)
				require.ErrorIs(t, lost.Reason, c.reason)
				if ofOneClient(k) {
					require.Equal(t, "lock", lost.Lock)
					require.True(t, strings.HasPrefix(err.Error(), `holdfast: lock "lock": lost: `), err)
				}
				require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			}
		},
	},
	{
		Name: "what is not held is ErrNotHeld, with advice if the context has no owner",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			err := lock.Unlock(t.Context())
			require.ErrorIs(t, err, rlock.ErrNotHeld)
			require.ErrorContains(t, err, "lock not held: ctx carries no owner; "+
				"call Unlock on the hold, or pass ")
			requireOnePrefix(t, err)
			err = lock.Unlock(rlock.WithOwner(t.Context()))
			require.ErrorIs(t, err, rlock.ErrNotHeld)
			requireOnePrefix(t, err)
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			locktest.Unlock(t, hold)
			err = hold.Unlock()
			require.ErrorIs(t, err, rlock.ErrNotHeld)
			requireOnePrefix(t, err)
		},
	},
	{
		Name: "a closed client is ErrClosed, not a lock that others hold",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			other := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Minute))
			waiting := e.waiter(t.Context(), t, k.New(p, "lock"))
			for _, c := range p.Clients {
				locktest.CloseClient(t, c)
			}
			_, err := k.New(p, "another").TryLock(t.Context(), time.Minute, rlock.Watchdog)
			for _, err := range []error{err, locktest.Result(t, waiting).Err} {
				require.ErrorIs(t, err, rlock.ErrClosed)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				requireOnePrefix(t, err)
			}
			locktest.Unlock(t, other)
		},
	},
	{
		Name:  "text that comes from Redis is escaped and shortened, also in the log",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			// It moves the cursor of a terminal, reverses a line, and is long.
			evil := "\x1b[2J\u202e\n" + strings.Repeat("x", 10_000)
			var logged atomic.Int64
			handler := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if text := a.Value.String(); strings.Contains(text, "xxx") {
					logged.Add(1)
					assert.Equal(t, printable.Text(text), text)
					assert.Less(t, len(text), 1200)
				}
				return a
			}}
			p := e.Party(t, func(o *rlock.Options) {
				o.Logger = slog.New(slog.NewTextHandler(io.Discard, handler))
			})
			own := locktest.Acquire(t, k.New(p, "mine"), rlock.Watchdog)
			refused := func(name string, wait time.Duration) {
				_, err := k.New(p, name).TryLock(t.Context(), wait, rlock.Watchdog)
				require.Error(t, err)
				assert.Contains(t, err.Error(), "xxx")
				assert.Equal(t, printable.Text(err.Error()), err.Error())
				assert.Less(t, len(err.Error()), 1200)
			}
			for i, owner := range []string{"stranger:" + evil, p.Client.ID() + ":" + evil} {
				name := strconv.Itoa(i)
				e.plant(t, k, name, owner)
				refused(name, time.Minute)
			}
			require.Equal(t, k.Name != "redlock", logged.Load() > 0)
			e.Reject(t, "ERR "+strings.ReplaceAll(evil, "\n", ""))
			refused("rejected", rlock.NoWait)
			e.Reject(t, "")
			locktest.Unlock(t, own)
		},
	},
}

// heldError returns the HeldError in an error, which must be that another owner has the lock.
func heldError(t *testing.T, err error) *rlock.HeldError {
	t.Helper()
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
	requireOnePrefix(t, err)
	var quorum *redlock.QuorumError
	held := new(rlock.HeldError)
	if !errors.As(err, &quorum) {
		require.ErrorAs(t, err, &held)
		return held
	}
	for _, node := range quorum.Nodes {
		if errors.As(node.Err, &held) {
			return held
		}
	}
	require.Fail(t, "no node says who holds it", err)
	return held
}

// forceUnlock frees a lock by force, or of several that make one so many that it is lost.
func forceUnlock(t *testing.T, p *Party, k Kind, name string) {
	t.Helper()
	for _, c := range p.Clients {
		lock, one := k.New(&Party{Client: c, Clients: p.Clients}, name).(*rlock.Lock)
		if !one {
			lock = c.NewLock(k.key(name))
		}
		_, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
	}
}
