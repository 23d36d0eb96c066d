package wait_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

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

func TestServerThatHangsKeepsNothingOfAWithdrawnCall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		calls := make([]*wait.Job, 100)
		withdrawn := make([]weak.Pointer[wait.Job], len(calls))
		for i := range calls {
			calls[i] = &wait.Job{Runner: wait.Func(func() {}), Timeout: time.Second}
			withdrawn[i] = weak.Make(calls[i])
			require.True(t, s.pool.Do(calls[i]))
		}
		// The first one that is withdrawn, with neighbours on either side, stays referenced. The
		// neighbours do not for that.
		kept := calls[len(calls)/2]
		for i := range calls {
			require.True(t, s.pool.Withdraw(calls[(i+len(calls)/2)%len(calls)]))
		}
		clear(calls)
		runtime.GC()
		alive := 0
		for _, p := range withdrawn {
			if p.Value() != nil {
				alive++
			}
		}
		require.Equal(t, 1, alive)
		runtime.KeepAlive(kept)
		answer(hanging...)
	})
}

func TestDoWithAFreeSlotStartsOneGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, g *goroutines) {
		for i := range 3 {
			r := s.do(time.Second, nil)
			require.EqualValues(t, i+1, g.started.Load())
			answer(r)
			require.Zero(t, g.now.Load(), "an idle pool has no goroutine")
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

func TestRunMayUseThePool(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		var inner *request
		outer := s.do(time.Second, func() {
			inner = s.do(time.Second, nil)
			s.pool.Withdraw(&inner.Job)
			s.pool.Stalled()
			inner = s.do(time.Second, nil)
		})
		answer(outer)
		require.EqualValues(t, 1, inner.runs.Load())
		answer(inner)
	})
}

func TestDoPanicsWhenTheCallWasUsedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, g *goroutines) {
		again := func(r *request) {
			t.Helper()
			require.Panics(t, func() { s.pool.Do(&r.Job) })
		}
		hanging := s.fill()
		again(hanging[0])
		waiting, withdrawn := s.do(time.Second, nil), s.do(time.Second, nil)
		again(waiting)
		s.pool.Withdraw(&withdrawn.Job)
		again(withdrawn)
		answer(append(hanging, waiting)...)
		again(waiting)

		g.closed.Store(true)
		refused := s.newRequest(time.Second, nil)
		require.False(t, s.pool.Do(&refused.Job))
		again(refused)
	})
}
