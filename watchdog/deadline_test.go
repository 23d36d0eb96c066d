package watchdog

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadlineIsLeaseMinusDrift(t *testing.T) {
	require.Equal(t, 302*time.Millisecond, Drift(lease))
	start := time.Now()
	require.Equal(t, lease-302*time.Millisecond, Deadline(start, lease).Sub(start))
	require.False(t, Deadline(start, 2*time.Millisecond).After(start),
		"the drift of a lease of 2 ms is all of it")
}

func TestDeadlineKeepsItsMonotonicReading(t *testing.T) {
	w := watch(t, Options{Renew: (&store{}).renew})
	l, _ := addNew(w, "node", false)
	require.Contains(t, l.Deadline().String(), " m=")
}

func TestDeadlineIsReportedAtTheExactInstantWhileARenewalHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &store{reply: func(_ context.Context, c call) ([]Outcome, error) {
			<-release // ignores its context
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew, CallTimeout: lease})
		deadline := Deadline(time.Now(), lease)
		l, lost := addNew(w, "node", true)

		sleep(time.Until(deadline) - time.Nanosecond)
		require.Len(t, s.seen(), 1)
		require.Empty(t, lost.seen())

		sleep(time.Nanosecond)
		lost.require(t, deadline, ErrExpired)

		close(release)
		sleep(lease)
		require.Len(t, lost.seen(), 1, "a late success is no second loss")
		require.Len(t, s.seen(), 1, "a late success revived the lease")
		require.True(t, l.Deadline().Equal(deadline))
	})
}

// When a stopped process resumes, everything is overdue: a reply may be seen before the timer
// fires.
func TestNothingRevivesALeaseWhoseLossIsNotReportedYet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		reply, callback := make(chan struct{}), make(chan struct{})
		s := &store{reply: func(_ context.Context, c call) ([]Outcome, error) {
			<-reply
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew, CallTimeout: lease})
		l, lost := addNew(w, "node", true)
		deadline := l.Deadline()
		// The callback of another lease keeps the scheduler busy past the deadline of l.
		w.Add(&Lease{OnLost: func(_ *Lease, _ error) { <-callback }}, time.Now().Add(lease/2), false)
		sleep(lease)
		require.Len(t, s.seen(), 1)
		require.Empty(t, lost.seen())

		close(reply)
		synctest.Wait()
		require.True(t, l.Deadline().Equal(deadline), "a late success revived it")
		w.Extend(l, time.Now().Add(lease))
		require.True(t, l.Deadline().Equal(deadline), "a late Extend revived it")

		close(callback)
		synctest.Wait()
		lost.require(t, time.Now(), ErrExpired)
	})
}

func TestLeaseWithoutEndIsNeverLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := watch(t, Options{Renew: (&store{}).renew})
		lost := &losses{}
		l := &Lease{OnLost: lost.add}
		w.Add(l, Deadline(time.Now(), math.MaxInt64), false)
		sleep(100 * 365 * 24 * time.Hour)
		require.Empty(t, lost.seen())
		require.True(t, w.Remove(l))
	})
}
