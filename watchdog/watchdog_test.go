package watchdog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExplicitLeaseIsNotRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		deadline := Deadline(time.Now(), lease)
		explicit, lost := addNew(w, "node", false)
		addNew(w, "node", true)
		sleep(2 * lease)

		require.NotEmpty(t, s.seen())
		require.Empty(t, s.of(explicit))
		lost.require(t, deadline, ErrExpired)
	})
}

func TestSetRenewSwitchesRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l, lost := addNew(w, "node", false)
		sleep(lease / 6)
		w.SetRenew(l, true)
		w.SetRenew(l, true) // counts once
		sleep(lease)
		on := len(s.of(l))
		require.GreaterOrEqual(t, on, 3)

		w.SetRenew(l, false)
		require.Zero(t, w.renewable)
		deadline := l.Deadline()
		sleep(lease)
		require.Len(t, s.of(l), on)
		lost.require(t, deadline, ErrExpired)

		w.SetRenew(l, true) // lost: nothing to renew
		require.Zero(t, w.renewable)
	})
}

func TestSwitchingOffAndOnDoesNotDelayTheRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l, lost := addNew(w, "node", true)
		last := time.Now()
		for range 100 {
			sleep(lease / 10)
			w.SetRenew(l, false)
			w.SetRenew(l, true)
		}
		for _, c := range s.of(l) {
			require.LessOrEqual(t, c.at.Sub(last), lease/3)
			last = c.at
		}
		require.LessOrEqual(t, time.Since(last), lease/3)
		require.LessOrEqual(t, len(s.of(l)), 40, "switching costs calls")
		require.Empty(t, lost.seen())
	})
}

func TestSwitchingOnTwiceChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l := &Lease{}
		w.Add(l, time.Now().Add(lease/2), true) // as old as one that waits for a retry
		w.SetRenew(l, true)
		sleep(lease * 29 / 100)
		require.Empty(t, s.seen())
		sleep(lease * 5 / 100)
		require.Len(t, s.of(l), 1)
	})
}

func TestOldLeaseIsRenewedAtOnceWhenSwitchedOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l, _ := addNew(w, "node", false)
		sleep(lease * 9 / 10)
		w.SetRenew(l, true)
		synctest.Wait()
		require.Len(t, s.of(l), 1)
		require.True(t, l.Deadline().Equal(Deadline(time.Now(), lease)))
	})
}

func TestExtendNeverShortens(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := watch(t, Options{Renew: (&store{}).renew})
		l, lost := addNew(w, "node", false)
		first := l.Deadline()
		w.Extend(l, first.Add(-time.Second))
		require.True(t, l.Deadline().Equal(first))

		later := first.Add(time.Minute)
		w.Extend(l, later)
		require.True(t, l.Deadline().Equal(later))
		w.Extend(l, first)
		require.True(t, l.Deadline().Equal(later))

		sleep(2 * lease)
		require.Empty(t, lost.seen(), "reported at the old deadline")
		sleep(2 * lease)
		lost.require(t, later, ErrExpired)
	})
}

func TestRenewalDoesNotShortenALongerLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l, _ := addNew(w, "node", true)
		later := time.Now().Add(time.Hour)
		w.Extend(l, later)
		sleep(lease)
		require.NotEmpty(t, s.of(l))
		require.True(t, l.Deadline().Equal(later))
	})
}

func TestRemovedLeaseIsNeitherRenewedNorReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		l, lost := addNew(w, "node", true)
		require.True(t, w.Remove(l))
		require.False(t, w.Remove(l))
		require.False(t, w.Remove(&Lease{}))
		sleep(2 * lease)
		require.Empty(t, s.seen())
		require.Empty(t, lost.seen())
	})
}

func TestResultForALeaseRemovedInFlightIsIgnored(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply Outcome
		err   error
	}{{"held", Held, nil}, {"gone", Gone, nil}, {"failed", Unknown, errNode}} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := &store{reply: func(context.Context, call) ([]Outcome, error) {
					time.Sleep(time.Second)
					return []Outcome{test.reply}, test.err
				}}
				w := watch(t, Options{Renew: s.renew})
				l, lost := addNew(w, "node", true)
				deadline := l.Deadline()
				sleep(lease / 3)
				require.Len(t, s.seen(), 1)

				require.True(t, w.Remove(l))
				sleep(2 * lease)

				require.Empty(t, lost.seen())
				require.True(t, l.Deadline().Equal(deadline))
				require.Len(t, s.seen(), 1)
				require.Empty(t, w.rounds, "an empty batch is left in the queue")
			})
		})
	}
}

// Many leases expire at once. What the first callback removes must not be reported by the next.
func TestRemoveThatReturnsTrueComesBeforeAnyReport(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := watch(t, Options{Renew: (&store{}).renew})
		leases := make([]*Lease, 2)
		var lost []*Lease
		deadline := time.Now().Add(time.Second)
		for i := range leases {
			l := &Lease{}
			l.OnLost = func(of *Lease, _ error) {
				require.Same(t, l, of)
				lost = append(lost, l)
				require.False(t, w.Remove(l), "reported and still watched")
				require.True(t, w.Remove(leases[1-i]))
			}
			leases[i] = l
			w.Add(l, deadline, false)
		}
		sleep(lease)
		require.Len(t, lost, 1)
	})
}

func TestLeasesAreThoseUnderWatchAndRemainAfterClose(t *testing.T) {
	w := watch(t, Options{Renew: (&store{}).renew})
	require.Empty(t, w.Leases())
	l, _ := addNew(w, "node", true)
	removed, _ := addNew(w, "node", false)
	require.ElementsMatch(t, []*Lease{l, removed}, w.Leases())
	w.Remove(removed)
	w.Close()
	require.Equal(t, []*Lease{l}, w.Leases())
}

func TestLeaseIsAddedOnce(t *testing.T) {
	w := watch(t, Options{Renew: (&store{}).renew})
	l, _ := addNew(w, "node", false)
	require.Panics(t, func() { w.Add(l, l.Deadline(), false) })
	w.Remove(l)
	require.Panics(t, func() { w.Add(l, l.Deadline(), false) })
}

func TestUselessOptionsPanic(t *testing.T) {
	renew := (&store{}).renew
	for name, o := range map[string]Options{
		"no lease":          {Renew: renew},
		"lease below 1 ms":  {Renew: renew, Lease: time.Microsecond},
		"no Renew":          {Lease: lease},
		"negative batch":    {Renew: renew, Lease: lease, BatchSize: -1},
		"negative time-out": {Renew: renew, Lease: lease, CallTimeout: -1},
	} {
		require.Panics(t, func() { New(o) }, name)
	}
}
