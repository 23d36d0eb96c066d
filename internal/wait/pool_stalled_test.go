package wait_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStalledCountsFromTheStartOfTheCallOnceItsTimeoutIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		r := s.do(time.Second, nil)
		synctest.Wait()
		require.Zero(t, s.pool.Stalled())
		time.Sleep(time.Second)
		require.Zero(t, s.pool.Stalled(), "at the end of its timeout, not beyond it")
		time.Sleep(time.Nanosecond)
		require.Equal(t, time.Second+time.Nanosecond, s.pool.Stalled())
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour+time.Second+time.Nanosecond, s.pool.Stalled())

		answer(r)
		require.Zero(t, s.pool.Stalled())
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
