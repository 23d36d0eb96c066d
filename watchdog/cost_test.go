package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChurnLeavesNothingBehind(t *testing.T) {
	w := watch(t, Options{Renew: (&store{}).renew})
	deadline := Deadline(time.Now(), lease)
	kept := make([]*Lease, 0, 100)
	for i := range 100_000 {
		l := &Lease{Group: "node"}
		w.Add(l, deadline.Add(time.Duration(i*7919%1000)*time.Millisecond), i%2 == 0)
		if kept = append(kept, l); len(kept) == cap(kept) {
			require.Len(t, w.deadlines, len(kept))
			for _, l := range kept {
				require.True(t, w.Remove(l))
			}
			kept = kept[:0]
		}
	}
	require.Empty(t, w.deadlines)
	require.Zero(t, w.renewable)
	require.Empty(t, w.rounds)
	for _, l := range w.deadlines[:cap(w.deadlines)] {
		require.Nil(t, l, "the heap keeps a removed lease alive")
	}
}

func TestLockUnlockLoopDoesNotWakeTheScheduler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := watch(t, Options{Renew: (&store{}).renew})
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

func TestAddAndRemoveAllocateNothing(t *testing.T) {
	w := watch(t, Options{Renew: (&store{}).renew})
	leases := make([]Lease, 2000)
	deadline := Deadline(time.Now(), lease)
	next := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		l := &leases[next]
		next++
		w.Add(l, deadline, true)
		w.Remove(l)
	}))
}
