package watchdog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShortLeaseIsRenewedWhenAThirdOfItIsOverAndOthersAreNot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
		addNew(w, "node", true)
		short := &Lease{Group: "node"}
		added := time.Now()
		w.Add(short, added.Add(lease/10), true)
		later := &Lease{Group: "node"}
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
		inBubble(t, func(t *testing.T) {
			s := &store{}
			w := watch(t, Options{Renew: s.renew})
			addNew(w, "node", true)
			w.Add(&Lease{Group: "node"}, time.Now().Add(left), true)
			sleep(left / 3)
			require.Equal(t, early, len(s.seen()) == 1)
		})
	}
}
