//go:build redis

package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestTracerHearsOfALossOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{WatchdogLease: 2 * time.Second})
		outer := take(t, k.lock(c, k.name), rlock.Watchdog)
		inner := takeWith(outer.Context(), t, k.lock(c, k.name), rlock.Watchdog)
		s.Do(t, "DEL", k.name)
		lostTo(t, inner, rlock.ErrGone)
		lostTo(t, outer, rlock.ErrGone)
		ends := locktest.WaitToHear[rlock.HoldEnd](t, tr, 2)
		require.Len(t, ends, 2)
		for _, end := range ends {
			require.ErrorIs(t, end.Err, rlock.ErrLost)
			require.ErrorIs(t, end.Err, rlock.ErrGone)
		}
		require.False(t, ends[0].Last)
		require.True(t, ends[1].Last)
	})
}

func TestTracerHearsOfRenewals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s)
	tr := new(locktest.Tracer)
	const lease = 3 * time.Second
	c := newClient(t, s, rlock.Options{WatchdogLease: lease, Tracer: tr}, asUser)
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
	require.NoError(t, renewed.Err)
	require.Equal(t, hold.Owner(), renewed.Owner)
	require.Equal(t, lease, renewed.Lease)
	require.Less(t, renewed.Margin, lease*2/3+lease/10, "of the lease before")
	require.Equal(t, hold.Owner(), renewed.Hold.(locktest.HoldTrace).Owner)

	s.Do(t, "ACL", "SETUSER", "app", "-pexpire")
	eventually(t, func() bool {
		for _, d := range locktest.Heard[rlock.RenewalEnd](tr) {
			refusal := new(rlock.ServerError)
			if errors.As(d.Err, &refusal) {
				return refusal.Code == "NOPERM" && d.Margin < lease
			}
		}
		return false
	}, "the refusal was not told")
	require.True(t, hold.Valid())
	s.Do(t, "ACL", "SETUSER", "app", "+pexpire")
	unlock(t, hold)
}
