package wait_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// storm makes 10,000 calls from 50 goroutines, withdraws some of them, and calls at before each of
// them, which may close the client. It returns how many were accepted. It checks that these, and no
// others, were run once unless they were withdrawn, at most Workers at a time, and that no
// goroutine is left.
func storm(t *testing.T, g *goroutines, at func(call int64)) (accepted int64) {
	t.Helper()
	const callers, each = 50, 200
	w := wait.NewPool(g.start)
	var made, busy, busiest atomic.Int64
	var runs [callers][each]atomic.Int64
	var took, withdrawn [callers][each]bool
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range each {
				at(made.Add(1))
				c := &wait.Job{Timeout: time.Second, Runner: wait.Func(func() {
					now := busy.Add(1)
					defer busy.Add(-1)
					for most := busiest.Load(); now > most && !busiest.CompareAndSwap(most, now); {
						most = busiest.Load()
					}
					runtime.Gosched() // lets others come between
					runs[i][j].Add(1)
				})}
				took[i][j] = w.Do(c)
				withdrawn[i][j] = j%3 == 0 && w.Withdraw(c)
			}
		})
	}
	all.Wait()
	g.all.Wait()

	for i := range callers {
		for j := range each {
			want := 0
			if took[i][j] {
				accepted++
			}
			if took[i][j] && !withdrawn[i][j] {
				want = 1
			}
			require.EqualValues(t, want, runs[i][j].Load())
		}
	}
	require.LessOrEqual(t, busiest.Load(), int64(wait.Workers))
	require.Zero(t, w.Stalled(), "nothing is in flight")
	t.Logf("%d accepted, at most %d under way, %d goroutines", accepted, busiest.Load(),
		g.started.Load())
	return accepted
}

func TestEveryCallAcceptedWhileTheClientClosesIsRunOnceOrWithdrawn(t *testing.T) {
	t.Parallel()
	// A client that closes may start calls to end properly, until none is in flight, as this one
	// does now and then.
	var g goroutines
	accepted := storm(t, &g, func(call int64) { g.closed.Store(call%100 > 50) })
	require.Positive(t, accepted)
}

func TestDoReturnsFalseWhenTheClientIsClosedAndNothingIsInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, g *goroutines) {
		g.closed.Store(true)
		refused := s.newRequest(time.Second, nil)
		require.False(t, s.pool.Do(&refused.Job))

		// If it were still queued, the next worker would run it.
		g.closed.Store(false)
		answer(s.do(time.Second, nil))
		require.Zero(t, refused.runs.Load())
		require.True(t, s.pool.Withdraw(&refused.Job))
	})
}

func TestClosedClientLeavesTheQueueToRunningWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, g *goroutines) {
		last := s.do(time.Second, nil)
		g.closed.Store(true)
		left := s.do(time.Second, nil)
		withdrawn := s.do(time.Second, nil)
		require.True(t, s.pool.Withdraw(&withdrawn.Job))
		answer(last)
		require.EqualValues(t, 1, s.busy.Load(), "the worker continues with the queue")
		answer(left)
		require.EqualValues(t, 1, left.runs.Load())
		require.EqualValues(t, 1, g.started.Load())
	})
}
