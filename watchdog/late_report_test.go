package watchdog

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lost connection makes the watchdog tick early, and on a server that rejects connections one is
// lost many times a second.
func TestLatenessIsReportedOncePerPeriodHoweverOftenRenewNowIsCalled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var reports atomic.Int64
		s := &store{}
		w := watch(t, Options{Renew: s.renew, OnLate: func(string, Lateness) { reports.Add(1) }})
		s.replyWith(func(ctx context.Context, _ call) ([]Outcome, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		addNew(w, "node", true)
		sleep(lease * 2 / 3) // one period until it is due, and another one until it is late
		require.Equal(t, int64(1), reports.Load())
		for range 20 {
			w.RenewNow()
			sleep(lease / 100)
		}
		require.Equal(t, int64(1), reports.Load())
	})
}
