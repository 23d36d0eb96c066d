package watchdog

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeaseThatIsRejectedCostsNoOtherItsRenewalAndGoesAloneUntilItIsRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		var failed failures
		w := watch(t, Options{Renew: s.renew, OnFailure: failed.add})
		bad, badLost := addNew(w, "node", true)
		deadline := bad.Deadline()
		all10 := []*Lease{bad}
		var lost []*losses
		for range 9 {
			l, ls := addNew(w, "node", true)
			all10, lost = append(all10, l), append(lost, ls)
		}
		reject := func(_ context.Context, c call) ([]Outcome, error) {
			if !slices.Contains(c.leases, bad) {
				return all(c.leases, true), nil
			}
			return slices.Repeat([]Outcome{Rejected}, len(c.leases)), errNode
		}
		s.replyWith(reject)

		w.mu.Lock()
		tick := epoch.Add(w.nextTick)
		w.mu.Unlock()
		sleep(time.Until(tick))
		calls := s.seen()
		require.Len(t, calls, 11, "one for all, and then one each")
		require.Len(t, calls[0].leases, 10)
		for _, c := range calls {
			require.Equal(t, calls[0].at, c.at, "a retry waited although its lease was not to blame")
		}
		require.Equal(t, []failure{{"node", 1, errNode}}, failed.seen(), "only the bad one failed")
		sleep(lease / 3) // the second tick
		for _, c := range s.seen()[11:] {
			require.Contains(t, []int{1, 9}, len(c.leases), "the rejected one spoiled a batch again")
		}
		require.Less(t, len(s.of(bad)), 12, "it is tried again too often")

		s.replyWith(nil)
		sleep(lease / 6) // another try
		require.True(t, bad.Deadline().After(deadline))
		sleep(lease / 3)
		calls = s.seen()
		require.ElementsMatch(t, all10, calls[len(calls)-1].leases, "it still goes alone")
		require.Empty(t, badLost.seen())

		s.replyWith(reject)
		deadline = bad.Deadline()
		sleep(2 * lease)
		badLost.require(t, deadline, ErrExpired)
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
	})
}
