//go:build interop

package redisson_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// lag is how much later than the end of a lease a waiter may have the lock. Redis removes a key when somebody asks.
	lag = 3 * time.Second
	// early is by how much the clocks of two processes and Redis may differ, and what it takes to acquire.
	early = 20 * time.Millisecond
)

// duel is a contest, held by one side and waited for by the other.
type duel struct {
	contest
	name           string
	holder, waiter actor
	since          time.Time     // when its time began to run, at the earliest
	left           time.Duration // the rest of its lease then
	waiting        <-chan outcome
}

// contested is the name that both want.
func (d *duel) contested() string {
	for _, name := range d.want.names {
		if slices.Contains(d.hold.names, name) {
			return name
		}
	}
	panic("a contest for nothing")
}

// newDuels takes the lock of every contest by one side.
func newDuels(t testing.TB, s *site, holds, waits side, lease time.Duration) []*duel {
	t.Helper()
	duels := make([]*duel, len(contests))
	for i, c := range contests {
		d := &duel{contest: c.make(), name: c.name, holder: holds.newActor(t, s), waiter: waits.newActor(t, s)}
		d.since = time.Now()
		take(t, d.holder, d.hold, lease)
		duels[i] = d
	}
	return duels
}

// wait has the other side wait for every lock.
func wait(duels []*duel) {
	for _, d := range duels {
		d.waiting = waitInBackground(d.waiter, d.want)
	}
}

func lockIsHadWhenTheLeaseOfTheOtherSideEnds(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		const lease = 1500 * time.Millisecond
		duels := newDuels(t, s, holds, waits, lease)
		wait(duels)
		for _, d := range duels {
			got := acquired(t, d.waiting).Sub(d.since)
			require.Greater(t, got, lease-early, d.name)
			require.Less(t, got, lease+lag, d.name)
			require.ErrorIs(t, d.holder.unlock(d.hold), errNotHolder, d.name)
			require.Zero(t, count(t, d.holder, d.hold), d.name)
			refused(t, d.holder, d.hold)
			unlock(t, d.waiter, d.want)
		}
	})
}

func watchdogsKeepLocksFromTheOtherSide(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		duels := newDuels(t, s, holds, waits, 0)
		for _, d := range duels {
			d.waiting = inBackground(func() error { return d.waiter.tryLock(d.want, watchdogLease*5/2, longLease) })
		}
		for _, d := range duels {
			o := <-d.waiting
			require.ErrorIs(t, o.err, errRefused, d.name)
			require.Greater(t, o.at.Sub(d.since), 2*watchdogLease, d.name)
		}
		wait(duels)
		for _, d := range duels {
			require.Equal(t, 1, count(t, d.holder, d.hold), d.name)
			unlock(t, d.holder, d.hold)
			acquired(t, d.waiting)
			unlock(t, d.waiter, d.want)
			s.requireFree(t, d.hold)
		}
	})
}
