package watchdog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
