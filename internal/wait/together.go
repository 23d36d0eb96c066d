package wait

import (
	"runtime"
	"sync"
)

// Together calls f with 0 to n-1, all at the same time, and returns when all calls have ended. If
// some panic, or call runtime.Goexit, Together does the same as one of them after that: in a
// goroutine of its own, foreign code would end the process, or be forgotten.
func Together(n int, f func(int)) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	var panicked any // guarded by mu
	returned := 0    // guarded by mu
	for i := range n {
		calls.Go(func() {
			done := false
			defer func() {
				value := recover()
				mu.Lock()
				defer mu.Unlock()
				if done {
					returned++
				} else if value != nil {
					panicked = value
				}
			}()
			f(i)
			done = true
		})
	}
	calls.Wait()
	switch {
	case panicked != nil:
		panic(panicked)
	case returned < n:
		runtime.Goexit()
	}
}
