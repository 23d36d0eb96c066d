//go:build redis

package redistest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServerOutlivesTheThreadThatLaunchedIt(t *testing.T) {
	s := Start(t)
	s.Kill(t)
	launched := make(chan error)
	thread := make(chan int, 1)
	var launch func()
	launch = func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			// The main thread never ends. While this goroutine occupies it, the next one must run
			// on another.
			defer runtime.UnlockOSThread()
			done := make(chan struct{})
			go func() {
				defer close(done)
				launch()
			}()
			<-done
			return
		}
		// Never unlocked: the thread ends with the goroutine.
		thread <- syscall.Gettid()
		launched <- s.launch()
	}
	go launch()
	require.NoError(t, <-launched)
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	require.Eventually(t, func() bool {
		_, err := os.Stat(task)
		return os.IsNotExist(err)
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, "PONG", s.DoString(t, "PING"))
}
