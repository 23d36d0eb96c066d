package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
