package wait

import (
	"runtime"
	"sync"
)

// Together calls f with 0 to n-1 at the same time, and returns when all calls have ended. If a call
// panics or calls runtime.Goexit, Together does the same after all calls have ended. A panic of
// foreign code in another goroutine would end the process, and a Goexit would go unnoticed.
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
