package watchdog

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeaseIsRenewedEveryThird(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		added := time.Now()
		l, lost := addNew(w, "node", true)
		sleep(time.Hour)
		calls := s.seen()
		require.GreaterOrEqual(t, len(calls), 360)
		require.LessOrEqual(t, len(calls), 400)
		last := added
		for _, c := range calls {
			require.Equal(t, []*Lease{l}, c.leases)
			require.GreaterOrEqual(t, c.at.Sub(last), lease*30/100,
				"interval shorter than the jitter allows")
			require.LessOrEqual(t, c.at.Sub(last), lease/3,
				"a lease waited for longer than a third")
			last = c.at
		}
		require.True(t, l.Deadline().Equal(Deadline(last, lease)),
			"the deadline counts from the last renewal")
		require.Empty(t, lost.seen())
	})
}

func TestHungGroupDelaysNoOther(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		s.replyWith(func(ctx context.Context, c call) ([]Outcome, error) {
			if c.group == "hung" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return all(c.leases), nil
		})
		added := time.Now()
		hung, hungLost := addNew(w, "hung", true)
		var others []*Lease
		for _, group := range []string{"a", "b", "c"} {
			l, _ := addNew(w, group, true)
			others = append(others, l)
		}
		sleep(lease)

		for _, l := range others {
			calls := s.of(l)
			require.GreaterOrEqual(t, len(calls), 3)
			require.LessOrEqual(t, calls[0].at.Sub(added), lease/3)
			require.LessOrEqual(t, calls[1].at.Sub(calls[0].at), lease/3)
		}
		require.Greater(t, len(s.of(hung)), 1, "a call that timed out is retried")
		hungLost.require(t, Deadline(added, lease), ErrExpired)
	})
}

func TestLeaseThatIsInFlightAtATickIsRenewedOnceMoreWhenTheReplyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w, s := watch(t, Options{callTimeout: lease})
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			<-release
			return all(c.leases), nil
		})
		first, _ := addNew(w, "node", true)
		sleep(lease / 3)
		require.Len(t, s.seen(), 1)
		second, _ := addNew(w, "node", true)
		sleep(lease / 3)
		require.Len(t, s.of(second), 1, "a call in flight delayed another")
		require.Len(t, s.of(first), 1, "it is in flight")

		close(release)
		synctest.Wait()

		require.Len(t, s.of(second), 1)
		require.Len(t, s.of(first), 2)
		require.True(t, first.Deadline().Equal(Deadline(time.Now(), lease)))
	})
}

// numbered is the subject of a lease that no test loses.
type numbered uint64

func (numbered) Lost(*Lease, error) {}

func TestLeasesWithDifferentNumbersNeverShareACall(t *testing.T) {
	o := Options{Group: func(l *Lease) (string, uint64) {
		return "node", uint64(l.Subject.(numbered))
	}}
	inBubble(t, o, func(t *testing.T, w *Watchdog, s *store) {
		for i := range uint64(6) {
			w.Add(&Lease{Subject: numbered(i % 2)}, Deadline(time.Now(), lease), true)
		}
		sleep(lease / 3)
		calls := s.seen()
		require.Len(t, calls, 2)
		for _, c := range calls {
			require.Len(t, c.leases, 3)
			for _, l := range c.leases {
				require.Equal(t, c.leases[0].Subject, l.Subject)
			}
		}
	})
}

func TestLeaseIsRenewedWithTheGroupThatItHasAtTheTick(t *testing.T) {
	var node atomic.Value
	node.Store("old master")
	o := Options{Group: func(*Lease) (string, uint64) { return node.Load().(string), 0 }}
	inBubble(t, o, func(t *testing.T, w *Watchdog, s *store) {
		w.Add(new(Lease), Deadline(time.Now(), lease), true)
		sleep(lease / 3)
		node.Store("new master")
		sleep(lease / 3)
		calls := s.seen()
		require.Len(t, calls, 2)
		require.Equal(t, "old master", calls[0].group)
		require.Equal(t, "new master", calls[1].group)
	})
}

func TestLatenessNamesTheGroupThatWasAsked(t *testing.T) {
	var node atomic.Value
	node.Store("old master")
	var late notes[string]
	o := Options{Group: func(*Lease) (string, uint64) { return node.Load().(string), 0 },
		OnLate: func(group string, _ Lateness) { late.add(group) }}
	inBubble(t, o, func(t *testing.T, w *Watchdog, s *store) {
		s.replyWith(slow(lease)) // the deadline ends the calls
		w.Add(new(Lease), Deadline(time.Now(), lease), true)
		sleep(lease/3 + time.Second)
		node.Store("new master")
		sleep(lease / 3)
		require.Equal(t, []string{"old master"}, late.seen())
	})
}

func TestRenewNowBringsTheTickForwardAndIsLimited(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		w.RenewNow()
		require.Equal(t, never, w.nextTick, "there is nothing to renew")
		l, _ := addNew(w, "node", true)
		explicit, _ := addNew(w, "node", false)
		sleep(lease / 6)
		w.RenewNow()
		synctest.Wait()
		first := s.of(l)
		require.Len(t, first, 1)
		require.Equal(t, time.Now(), first[0].at)
		for range 100 { // connections come and go
			w.RenewNow()
			sleep(lease / 100)
		}
		calls := s.of(l)
		require.GreaterOrEqual(t, len(calls), 29)
		require.LessOrEqual(t, len(calls), 31, "it does not limit calls")
		for i := range calls[1:] {
			require.GreaterOrEqual(t, calls[i+1].at.Sub(calls[i].at), lease/30)
		}
		require.Empty(t, s.of(explicit))
	})
}

func TestShortLeaseIsRenewedWhenAThirdOfItIsOverAndOthersAreNot(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
		addNew(w, "node", true)
		short := new(Lease)
		added := time.Now()
		w.Add(short, added.Add(lease/10), true)
		later := new(Lease)
		sleep(lease / 60)
		w.Add(later, time.Now().Add(lease/10), true)
		sleep(lease/30 - lease/60)
		calls := s.seen()
		require.Len(t, calls, 1)
		require.ElementsMatch(t, []*Lease{short, later}, calls[0].leases,
			"one call for all that are short")
		require.Equal(t, lease/30, calls[0].at.Sub(added))
		require.True(t, short.Deadline().Equal(Deadline(calls[0].at, lease)))
		sleep(lease / 5)
		require.Len(t, s.seen(), 1, "it is not short any more")
	})
}

// It would last until the tick, but a renewal that fails needs time for more tries.
func TestLeaseIsShortWithLessThanHalfOfItLeft(t *testing.T) {
	for left, early := range map[time.Duration]bool{lease * 9 / 20: true, lease * 11 / 20: false} {
		inBubble(t, Options{}, func(t *testing.T, w *Watchdog, s *store) {
			addNew(w, "node", true)
			w.Add(new(Lease), time.Now().Add(left), true)
			sleep(left / 3)
			require.Equal(t, early, len(s.seen()) == 1)
		})
	}
}

func TestLockUnlockLoopDoesNotWakeTheScheduler(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *Watchdog, _ *store) {
		armed := func() time.Duration {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.armed
		}
		l, _ := addNew(w, "node", true)
		synctest.Wait()
		w.Remove(l)
		first := armed()
		require.Less(t, first, never)
		for range 1000 {
			l, _ := addNew(w, "node", true)
			require.Empty(t, w.wake)
			require.Equal(t, first, armed())
			w.Remove(l)
			sleep(time.Millisecond)
		}
	})
}
