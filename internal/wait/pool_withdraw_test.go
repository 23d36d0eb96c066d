package wait_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

func TestWithdrawnCallIsNeverRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		r := s.do(time.Second, nil)
		require.True(t, s.pool.Withdraw(&r.Job))
		require.True(t, s.pool.Withdraw(&r.Job), "it stays true")
		answer(hanging...)
		require.Zero(t, r.runs.Load())
	})
}

func TestWithdrawReturnsFalseOnceTheCallIsInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		hanging := s.fill()
		require.False(t, s.pool.Withdraw(&hanging[0].Job))
		require.Equal(t, int64(wait.Workers), s.busy.Load())
		answer(hanging...)
		require.False(t, s.pool.Withdraw(&hanging[0].Job), "nor after its reply")
	})
}
