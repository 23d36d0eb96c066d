package watchdog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// They are as many as 100,000 leases need. Single leases make the test quick.
func TestThousandBatchesAreRenewedOverASlowNetworkWithinASixthOfTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const batches, roundTrip = 1000, 100 * time.Millisecond
		var inFlight, most atomic.Int64
		var first, last time.Time
		s := &store{}
		w := watch(t, Options{Renew: s.renew, BatchSize: 1, OnLate: func(string, Lateness) {
			t.Error("late")
		}})
		s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.Sleep(roundTrip)
			inFlight.Add(-1)
			if s.mu.Lock(); first.IsZero() {
				first = c.at
			}
			last = time.Now()
			s.mu.Unlock()
			return all(c.leases, true), nil
		})
		lost := make([]*losses, batches)
		for i := range lost {
			_, lost[i] = addNew(w, "node", true)
		}
		sleep(lease / 2)
		require.Len(t, s.seen(), batches)
		s.mu.Lock()
		took := last.Sub(first)
		s.mu.Unlock()
		require.Less(t, took, lease/6)
		require.LessOrEqual(t, most.Load(), int64(mostCalls))
		sleep(lease)
		for _, ls := range lost {
			require.Empty(t, ls.seen())
		}
	})
}

func TestPeriodThatCannotBeKeptIsReportedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		type report struct {
			at    time.Time
			group string
			late  Lateness
		}
		var mu sync.Mutex
		var reports []report
		seen := func() []report {
			mu.Lock()
			defer mu.Unlock()
			return reports
		}
		s := &store{}
		w := watch(t, Options{Renew: s.renew, BatchSize: 1, OnLate: func(group string, late Lateness) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, report{time.Now(), group, late})
		}})
		s.replyWith(func(ctx context.Context, c call) ([]Outcome, error) {
			if c.group == "slow" {
				return slow(4*time.Second)(ctx, c)
			}
			return all(c.leases, true), nil
		})
		for range 4 * mostCalls { // four times 4 s are more than a period of 10 s
			addNew(w, "slow", true)
		}
		addNew(w, "node", true)
		deadline := Deadline(time.Now(), lease)
		sleep(lease * 21 / 30)
		require.Len(t, seen(), 1)
		r := seen()[0]
		require.Equal(t, "slow", r.group)
		require.Equal(t, 4*mostCalls, r.late.Leases)
		require.GreaterOrEqual(t, r.late.Late, mostCalls)
		require.Less(t, r.late.Late, 4*mostCalls)
		require.Equal(t, deadline.Sub(r.at), r.late.Left)
		sleep(lease / 3)
		require.Len(t, seen(), 2, "it is as slow in the next period")
	})
}
