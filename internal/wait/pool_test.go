package wait_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

func TestServerThatHangsOccupiesNoMoreThanWorkersGoroutines(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, g *goroutines) {
		hanging := s.fill()
		var waiting []*request
		for range 10 * wait.Workers {
			waiting = append(waiting, s.do(time.Second, nil))
		}
		time.Sleep(time.Hour)
		require.EqualValues(t, wait.Workers, s.busy.Load())
		require.EqualValues(t, wait.Workers, g.started.Load())

		answer(append(hanging, waiting...)...)
		require.EqualValues(t, wait.Workers, g.started.Load(),
			"the existing workers take the queue")
		for _, r := range waiting {
			require.EqualValues(t, 1, r.runs.Load())
		}
	})
}

func TestQueueIsServedInTheOrderOfDo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		var order, want []int
		var line []*request
		for i := range 100 {
			line = append(line, s.do(time.Second, func() { order = append(order, i) }))
			want = append(want, i)
			close(line[i].reply)
		}
		for _, i := range []int{99, 50, 49, 51, 0} {
			require.True(t, s.pool.Withdraw(&line[i].Job))
			want = slices.Delete(want, slices.Index(want, i), slices.Index(want, i)+1)
		}

		// One worker becomes free, so they run one after another.
		answer(hanging[0])
		require.Equal(t, want, order)
		answer(hanging[1:]...)
	})
}

// Foreign code may end the goroutine of a call. The pool goes on with the others.
func TestPoolGoesOnAfterCallsHaveEndedTheirGoroutines(t *testing.T) {
	for name, queued := range map[string]int{"idle": 0, "busy": 2 * wait.Workers} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
				var ending, others []*request
				for range wait.Workers {
					r := s.newRequest(time.Second, nil)
					run := r.Runner
					r.Runner = wait.Func(func() {
						run.Run()
						runtime.Goexit()
					})
					require.True(t, s.pool.Do(&r.Job))
					ending = append(ending, r)
				}
				synctest.Wait()
				for range queued {
					others = append(others, s.do(time.Second, nil))
				}
				time.Sleep(time.Minute)
				answer(ending...)
				require.Zero(t, s.pool.Stalled())
				answer(others...)
				for _, r := range others { // before a new call brings new workers
					require.EqualValues(t, 1, r.runs.Load())
				}
				answer(s.fill()...)
			})
		})
	}
}

// A client that closes may start calls to end properly, until none is in flight, as this one does
// now and then.
func TestEveryCallAcceptedWhileTheClientClosesIsRunOnceOrWithdrawn(t *testing.T) {
	t.Parallel()
	const callers, each = 50, 200
	var g goroutines
	w := wait.NewPool(g.start)
	var made, busy, accepted atomic.Int64
	var runs [callers][each]atomic.Int64
	var took, withdrawn [callers][each]bool
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range each {
				g.closed.Store(made.Add(1)%100 > 50)
				c := &wait.Job{Timeout: time.Second, Runner: wait.Func(func() {
					if busy.Add(1) > wait.Workers {
						t.Error("too many at a time")
					}
					defer busy.Add(-1)
					runtime.Gosched() // lets others come between
					runs[i][j].Add(1)
				})}
				took[i][j] = w.Do(c)
				if took[i][j] {
					accepted.Add(1)
				}
				withdrawn[i][j] = j%3 == 0 && w.Withdraw(c)
			}
		})
	}
	all.Wait()
	g.all.Wait()
	for i := range callers {
		for j := range each {
			want := 0
			if took[i][j] && !withdrawn[i][j] {
				want = 1
			}
			require.EqualValues(t, want, runs[i][j].Load())
		}
	}
	require.Positive(t, accepted.Load())
	require.Zero(t, w.Stalled(), "nothing is in flight")
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

func TestWithdrawnCallIsNeverRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		require.False(t, s.pool.Withdraw(&hanging[0].Job), "it is in flight")
		r := s.do(time.Second, nil)
		require.True(t, s.pool.Withdraw(&r.Job))
		require.True(t, s.pool.Withdraw(&r.Job), "it stays true")
		answer(hanging...)
		require.Zero(t, r.runs.Load())
	})
}

func TestRemainingIsTheRestOfTheTimeoutOfAJobThatRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		first, second := s.do(time.Second, nil), s.do(3*time.Second, nil)
		synctest.Wait()
		for _, left := range []time.Duration{time.Second, time.Nanosecond, 0} {
			time.Sleep(s.pool.Remaining(&first.Job) - left)
			require.Equal(t, left, s.pool.Remaining(&first.Job))
		}
		require.Equal(t, 2*time.Second, s.pool.Remaining(&second.Job), "though another is overdue")
		answer(first, second)
	})
}

func TestRemainingOfAQueuedCallIsThatOfTheOldestInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill() // with a second each
		waiting := s.do(time.Minute, nil)
		time.Sleep(time.Second / 4)
		require.Equal(t, time.Second*3/4, s.pool.Remaining(&waiting.Job))
		time.Sleep(time.Second * 3 / 4)
		require.Zero(t, s.pool.Remaining(&waiting.Job), "the server hangs")

		answer(hanging...)
		require.Equal(t, time.Minute, s.pool.Remaining(&waiting.Job), "it is in flight itself")
		answer(waiting)
	})
}

func TestStalledGoesOnToTheNextOldestCall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		var requests []*request
		for range 4 {
			requests = append(requests, s.do(2*time.Second, nil))
			time.Sleep(time.Second)
		}
		// In flight for 4, 3, 2 and 1 seconds now.
		require.Equal(t, 4*time.Second, s.pool.Stalled())
		answer(requests[1])
		require.Equal(t, 4*time.Second, s.pool.Stalled(),
			"a reply to a younger one changes nothing")
		answer(requests[0])
		require.Zero(t, s.pool.Stalled(), "the oldest is now the third, just within its timeout")
		time.Sleep(time.Second)
		require.Equal(t, 3*time.Second, s.pool.Stalled())
		answer(requests[2])
		require.Zero(t, s.pool.Stalled())
		answer(requests[3])
	})
}

func TestStalledDoesNotCountTheTimeInTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		waiting := s.do(time.Second, nil)
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, s.pool.Stalled())

		answer(hanging...)
		require.EqualValues(t, 1, waiting.runs.Load())
		require.Zero(t, s.pool.Stalled())
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*time.Second, s.pool.Stalled())
		answer(waiting)
	})
}

const (
	tenth = 300 * time.Millisecond // of a lease of 3 s
	least = 5 * time.Millisecond
)

// taught returns a pool whose server took that long for its replies.
func taught(times int, took time.Duration) *wait.Pool {
	w := wait.NewPool(nil)
	for range times {
		w.Answered(took)
	}
	return w
}

func TestTimeoutIsThreeTimesWhatNearlyAllRepliesTook(t *testing.T) {
	for _, c := range []struct {
		took, timeout time.Duration
	}{
		{100 * time.Microsecond, 5 * time.Millisecond},
		{2 * time.Millisecond, 6 * time.Millisecond},
		{30 * time.Millisecond, 90 * time.Millisecond},
		{80 * time.Millisecond, 240 * time.Millisecond},
		{200 * time.Millisecond, tenth},
		{time.Hour, tenth},
	} {
		for _, times := range []int{1, 2, 19, 20, 32, 1000} {
			require.Equal(t, c.timeout, taught(times, c.took).Timeout(least, tenth),
				"after %d replies that took %v", times, c.took)
		}
	}
}

func TestOneLateReplyInTwentyDoesNotMakeTheTimeoutLong(t *testing.T) {
	w := taught(1000, time.Millisecond)
	w.Answered(time.Hour)
	require.Equal(t, 5*time.Millisecond, w.Timeout(least, tenth))
}

// When a server that hung resumes, all calls in flight get their replies at once.
func TestServerThatHungIsForgottenAfterThirtyOneReplies(t *testing.T) {
	w := taught(wait.Workers, time.Hour)
	for range 30 {
		w.Answered(time.Millisecond)
		require.Equal(t, tenth, w.Timeout(least, tenth), "and never more than that")
	}
	w.Answered(time.Millisecond)
	require.Equal(t, 5*time.Millisecond, w.Timeout(least, tenth))
}
