package wait_test

import (
	"runtime"
	"sync"
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

func TestWithdrawReturnsFalseBeforeDo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *goroutines) {
		r := s.newRequest(time.Second, nil)
		require.False(t, s.pool.Withdraw(&r.Job))
		require.True(t, s.pool.Do(&r.Job))
		answer(r)
		require.EqualValues(t, 1, r.runs.Load())
	})
}

func TestEitherRunOrWithdrawWins(t *testing.T) {
	t.Parallel()
	const calls, withdrawers = 20_000, 3
	var g goroutines
	w := wait.NewPool(g.start)
	won := 0
	for i := range calls {
		// without a lock: the race detector checks that the loser comes after the winner
		ran := false
		c := &wait.Job{Runner: wait.Func(func() { ran = true }), Timeout: time.Second}
		require.True(t, w.Do(c))
		var all sync.WaitGroup
		var withdrawn [withdrawers]bool
		for j := range withdrawers {
			all.Go(func() { withdrawn[j] = w.Withdraw(c) })
		}
		if i%2 == 0 {
			// otherwise the last to be started, a withdrawer, nearly always comes first
			runtime.Gosched()
		}
		all.Wait()
		g.all.Wait()
		if withdrawn[0] {
			won++
		}
		for _, told := range withdrawn {
			require.Equal(t, !ran, told, "all get the same result, the true one")
		}
	}
	t.Logf("Withdraw won %d times of %d", won, calls)
}
