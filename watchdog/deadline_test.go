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
	w, _ := watch(t, Options{})
	l, _ := addNew(w, "node", false)
	require.Contains(t, l.Deadline().String(), " m=")
}

func TestDeadlineIsReportedAtTheExactInstantWhileARenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w, s := watch(t, Options{callTimeout: lease})
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			<-release // ignores its context
			return all(c.leases), nil
		})
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
	synctest.Test(t, func(t *testing.T) {
		reply, callback := make(chan struct{}), make(chan struct{})
		w, s := watch(t, Options{callTimeout: lease})
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			<-reply
			return all(c.leases), nil
		})
		l, lost := addNew(w, "node", true)
		deadline := l.Deadline()
		// The callback of another lease keeps the scheduler busy past the deadline of l.
		w.Add(&Lease{Subject: onLost(func(*Lease, error) { <-callback })}, time.Now().Add(lease/2), false)
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
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, _ *store) {
		lost := &losses{}
		l := &Lease{Subject: onLost(lost.lose)}
		w.Add(l, Deadline(time.Now(), math.MaxInt64), false)
		sleep(100 * 365 * 24 * time.Hour)
		require.Empty(t, lost.seen())
		require.True(t, w.Remove(l))
	})
}

func TestOldLeaseIsRenewedAtOnceWhenSwitchedOn(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		l, _ := addNew(w, "node", false)
		sleep(lease * 9 / 10)
		w.SetRenew(l, true)
		synctest.Wait()
		require.Len(t, s.of(l), 1)
		require.True(t, l.Deadline().Equal(Deadline(time.Now(), lease)))
	})
}

// Many leases expire at once. What the first callback removes must not be reported by the next.
func TestRemoveThatReturnsTrueComesBeforeAnyReport(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, _ *store) {
		leases := make([]*Lease, 2)
		var lost []*Lease
		deadline := time.Now().Add(time.Second)
		for i := range leases {
			l := &Lease{}
			l.Subject = onLost(func(of *Lease, _ error) {
				require.Same(t, l, of)
				lost = append(lost, l)
				require.False(t, w.Remove(l), "reported and still watched")
				require.True(t, w.Remove(leases[1-i]))
			})
			leases[i] = l
			w.Add(l, deadline, false)
		}
		sleep(lease)
		require.Len(t, lost, 1)
	})
}

func TestLeasesAreThoseUnderWatchAndRemainAfterClose(t *testing.T) {
	w, _ := watch(t, Options{})
	require.Empty(t, w.Leases())
	l, _ := addNew(w, "node", true)
	removed, _ := addNew(w, "node", false)
	require.ElementsMatch(t, []*Lease{l, removed}, w.Leases())
	w.Remove(removed)
	w.Close()
	require.Equal(t, []*Lease{l}, w.Leases())
}

func TestLeaseIsAddedOnce(t *testing.T) {
	w, _ := watch(t, Options{})
	l, _ := addNew(w, "node", false)
	require.Panics(t, func() { w.Add(l, l.Deadline(), false) })
	w.Remove(l)
	require.Panics(t, func() { w.Add(l, l.Deadline(), false) })
}

func TestUselessOptionsPanic(t *testing.T) {
	renew := new(store).renew
	for name, o := range map[string]Options{
		"no lease":         {Renew: renew},
		"lease below 1 ms": {Renew: renew, Lease: time.Microsecond},
		"no Renew":         {Lease: lease},
	} {
		require.Panics(t, func() { New(o) }, name)
	}
}

func TestCloseEndsCallsInFlightAndReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		w, s := watch(t, Options{})
		s.replyWith(func(ctx context.Context, _ call) ([]Outcome, error) {
			<-ctx.Done()
			ended = context.Cause(ctx)
			return nil, ended
		})
		_, lost := addNew(w, "node", true)
		_, explicitLost := addNew(w, "node", false)
		sleep(lease / 3)
		require.Len(t, s.seen(), 1)
		w.Close()
		require.ErrorIs(t, ended, context.Canceled, "Close returned before the call in flight")
		require.Empty(t, s.failed.seen())
		w.Close()
		_, addedLate := addNew(w, "node", true)
		sleep(2 * lease)
		require.Empty(t, lost.seen())
		require.Empty(t, explicitLost.seen())
		require.Empty(t, addedLate.seen())
		require.Len(t, s.seen(), 1)
	})
}

func TestDeadlineThatComesDuringCloseIsNotReported(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, _ *store) {
		callback := make(chan struct{})
		w.Add(&Lease{Subject: onLost(func(*Lease, error) { <-callback })}, time.Now(), false)
		_, lost := addNew(w, "node", false)
		sleep(lease)

		closed := make(chan struct{})
		go func() { w.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close did not wait for a running callback")
		default:
		}
		close(callback)
		<-closed
		require.Empty(t, lost.seen())
	})
}
