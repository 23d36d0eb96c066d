package wait_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRemainingIsTheRestOfTheTimeoutOfAJobThatRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		first, second := s.do(time.Second, nil), s.do(3*time.Second, nil)
		synctest.Wait()
		require.Equal(t, time.Second, s.pool.Remaining(&first.Job))
		time.Sleep(time.Second - time.Nanosecond)
		require.Equal(t, time.Nanosecond, s.pool.Remaining(&first.Job))
		time.Sleep(time.Nanosecond)
		require.Zero(t, s.pool.Remaining(&first.Job))
		require.Equal(t, 2*time.Second, s.pool.Remaining(&second.Job), "though another is overdue")
		time.Sleep(time.Second)
		require.Zero(t, s.pool.Remaining(&first.Job))
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
