package crew_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStalledIsZeroWithoutACall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		require.Zero(t, s.crew.Stalled())
		answer(s.do(0, nil))
		time.Sleep(time.Hour)
		require.Zero(t, s.crew.Stalled())
	})
}

func TestStalledCountsFromTheStartOfTheCallOnceItsPatienceIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		r := s.do(time.Second, nil)
		synctest.Wait()
		require.Zero(t, s.crew.Stalled())
		time.Sleep(time.Second)
		require.Zero(t, s.crew.Stalled(), "at the end of its patience, not beyond it")
		time.Sleep(time.Nanosecond)
		require.Equal(t, time.Second+time.Nanosecond, s.crew.Stalled())
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour+time.Second+time.Nanosecond, s.crew.Stalled())

		answer(r)
		require.Zero(t, s.crew.Stalled())
	})
}

func TestStalledGoesOnToTheNextOldestCall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		var requests []*request
		for range 4 {
			requests = append(requests, s.do(2*time.Second, nil))
			time.Sleep(time.Second)
		}
		// Under way for 4, 3, 2 and 1 seconds now.
		require.Equal(t, 4*time.Second, s.crew.Stalled())
		answer(requests[1])
		require.Equal(t, 4*time.Second, s.crew.Stalled(), "the answer to a younger one changes nothing")
		answer(requests[0])
		require.Zero(t, s.crew.Stalled(), "the oldest is now the third, just within its patience")
		time.Sleep(time.Second)
		require.Equal(t, 3*time.Second, s.crew.Stalled())
		answer(requests[2])
		require.Zero(t, s.crew.Stalled())
		answer(requests[3])
	})
}

func TestStalledAsksThePatienceOfTheOldestCallOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		patient := s.do(10*time.Second, nil)
		time.Sleep(time.Second)
		hasty := s.do(time.Second, nil)
		time.Sleep(5 * time.Second)
		require.Zero(t, s.crew.Stalled())
		answer(patient)
		require.Equal(t, 5*time.Second, s.crew.Stalled())
		answer(hasty)
		require.Zero(t, s.crew.Stalled())
	})
}

func TestStalledDoesNotCountTheTimeInLine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		waiting := s.do(time.Second, nil)
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, s.crew.Stalled())

		answer(hanging...)
		require.EqualValues(t, 1, waiting.runs.Load())
		require.Zero(t, s.crew.Stalled())
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*time.Second, s.crew.Stalled())
		answer(waiting)
	})
}
