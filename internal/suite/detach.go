package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

func detaches(k Kind) bool { return k.Detaches }

// Detach: a hold ends in one process, and its lock goes on in another.
var detach = []Promise{
	{
		Name: "a detached lock goes on in the process that attaches it",
		Kept: detaches,
		Test: func(t *testing.T, e *Env, k Kind) {
			here, there := e.Party(t), e.Party(t, func(o *rlock.Options) {
				o.NameMapper = rlock.Prefix("the text has the mapped name:")
			})
			lock, other := k.New(here, "a name: with colons"), k.Contender(here, "a name: with colons")
			hold := locktest.Acquire(t, lock, rlock.Lease(time.Hour))
			text, err := hold.Detach()
			require.NoError(t, err)
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			requireBusy(t, other)

			next, err := there.Client.Attach(t.Context(), text, rlock.Watchdog)
			require.NoError(t, err)
			require.Equal(t, lock.Name(), next.Name())
			require.Equal(t, hold.Token(), next.Token())
			require.True(t, strings.HasPrefix(next.Owner(), there.Client.ID()+":"))
			require.True(t, next.Valid())
			for _, p := range []*Party{here, there} {
				_, err = p.Client.Attach(t.Context(), text, rlock.Lease(time.Hour))
				require.ErrorIs(t, err, rlock.ErrLost, "it works twice")
			}
			waiter := locktest.LockInBackground(t.Context(), other, rlock.Lease(time.Hour))
			e.settle()
			require.Empty(t, waiter)
			locktest.Unlock(t, next)
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "an attached lock re-enters",
		Kept: func(k Kind) bool { return detaches(k) && nests(k) },
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			text, err := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour)).Detach()
			require.NoError(t, err)
			hold, err := p.Client.Attach(t.Context(), text, rlock.Lease(time.Hour))
			require.NoError(t, err)
			locktest.Unlock(
				t,
				locktest.AcquireWith(hold.Context(), t, k.New(p, "lock"), rlock.Lease(time.Hour)),
			)
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a detached lock is lost when its lease ends, and an attached one has a new lease",
		Kept:  detaches,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), k.Contender(e.Party(t), "lock")
			text, err := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour)).Detach()
			require.NoError(t, err)
			hold, err := p.Client.Attach(t.Context(), text, rlock.Lease(time.Minute))
			require.NoError(t, err)
			waiter := locktest.LockInBackground(t.Context(), other, rlock.Lease(time.Hour))
			requireExpires(t, hold)
			locktest.Unlock(t, acquiredAfter(t, hold.Deadline(), waiter))

			text, err = locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Minute)).Detach()
			require.NoError(t, err)
			time.Sleep(time.Minute)
			_, err = p.Client.Attach(t.Context(), text, rlock.Lease(time.Hour))
			require.ErrorIs(t, err, rlock.ErrLost)
			require.ErrorIs(t, err, rlock.ErrGone)
			locktest.Unlock(t, locktest.Acquire(t, other, rlock.Lease(time.Hour)))
		},
	},
	{
		Name: "a hold that cannot be detached goes on",
		Test: func(t *testing.T, e *Env, k Kind) {
			holds := k.nest(
				rlock.WithOwner(t.Context()),
				t,
				k.New(e.Party(t), "lock"),
				rlock.Lease(time.Hour),
			)
			for i, hold := range holds {
				if last := i == len(holds)-1; !last || !detaches(k) {
					_, err := hold.Detach()
					require.ErrorIs(t, err, rlock.ErrInvalid)
					require.True(t, hold.Valid())
				}
				locktest.Unlock(t, hold)
				_, err := hold.Detach()
				require.ErrorIs(t, err, rlock.ErrNotHeld)
			}
			e.RequireNothingLeft(t)
		},
	},
}
