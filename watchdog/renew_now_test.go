package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRenewNowBringsTheTickForwardAndIsLimited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &store{}
		w := watch(t, Options{Renew: s.renew})
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
