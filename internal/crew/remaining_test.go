package crew_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRemainingIsTheRestOfThePatienceOfACallUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		first, second := s.do(time.Second, nil), s.do(3*time.Second, nil)
		synctest.Wait()
		require.Equal(t, time.Second, s.crew.Remaining(&first.Call))
		time.Sleep(time.Second - time.Nanosecond)
		require.Equal(t, time.Nanosecond, s.crew.Remaining(&first.Call))
		time.Sleep(time.Nanosecond)
		require.Zero(t, s.crew.Remaining(&first.Call))
		require.Equal(t, 2*time.Second, s.crew.Remaining(&second.Call), "though another is overdue")
		time.Sleep(time.Second)
		require.Zero(t, s.crew.Remaining(&first.Call))
		answer(first, second)
	})
}

func TestRemainingOfACallInLineIsThatOfTheOldestUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill() // patient for a second
		waiting := s.do(time.Minute, nil)
		time.Sleep(time.Second / 4)
		require.Equal(t, time.Second*3/4, s.crew.Remaining(&waiting.Call))
		time.Sleep(time.Second * 3 / 4)
		require.Zero(t, s.crew.Remaining(&waiting.Call), "the server hangs")

		answer(hanging...)
		require.Equal(t, time.Minute, s.crew.Remaining(&waiting.Call), "under way itself")
		answer(waiting)
	})
}

func TestRemainingIsZeroWhenThereIsNothingToWaitFor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		require.Zero(t, s.crew.Remaining(&s.newRequest(time.Second, nil).Call), "not given to Do")
		hanging := s.fill()
		withdrawn := s.do(time.Second, nil)
		require.True(t, s.crew.Withdraw(&withdrawn.Call))
		require.Zero(t, s.crew.Remaining(&withdrawn.Call))
		answer(hanging...)
		require.Zero(t, s.crew.Remaining(&hanging[0].Call), "answered")
	})
}

func TestRemainingIsNotZeroBeforeTheWorkerRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		r := s.do(time.Second, nil)
		require.Equal(t, time.Second, s.crew.Remaining(&r.Call))
		answer(r)
	})
}
