package wait_test

import (
	"slices"
	"testing"
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
