package wait_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

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
