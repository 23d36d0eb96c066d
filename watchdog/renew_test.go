package watchdog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeaseIsRenewedEveryThird(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
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
	inBubble(t, func(t *testing.T) {
		s := &store{reply: func(ctx context.Context, c call) ([]Outcome, error) {
			if c.group == "hung" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew})
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
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &store{reply: func(_ context.Context, c call) ([]Outcome, error) {
			<-release
			return all(c.leases, true), nil
		}}
		w := watch(t, Options{Renew: s.renew, CallTimeout: lease})
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

func TestLeasesThatASplitTellsApartNeverShareACall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew, Split: func(l *Lease) uint64 { return l.Value.(uint64) }})
		for i := range uint64(6) {
			w.Add(&Lease{Group: "node", Value: i % 2}, Deadline(time.Now(), lease), true)
		}
		sleep(lease / 3)
		calls := s.seen()
		require.Len(t, calls, 2)
		for _, c := range calls {
			require.Len(t, c.leases, 3)
			for _, l := range c.leases {
				require.Equal(t, c.leases[0].Value, l.Value)
			}
		}
	})
}
