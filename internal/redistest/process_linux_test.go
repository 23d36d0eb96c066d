package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServerDiesWithATestBinaryThatIsKilled(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	owner := exec.Command(path)
	owner.Env = append(os.Environ(), roleVariable+"=owner")
	output, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	addr := strings.TrimSpace(line)
	require.NoError(t, dial(addr))

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	require.Eventually(t, func() bool {
		return dial(addr) != nil
	}, 5*time.Second, 5*time.Millisecond)
}

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

func dial(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestFilesOfAServerAreInMemoryAndGoneAfterItsTest(t *testing.T) {
	var memory syscall.Statfs_t
	require.NoError(t, syscall.Statfs("/dev/shm", &memory))
	var dir string
	t.Run("with a server", func(t *testing.T) {
		dir = newProcess(t, "never launched", &settings{}).dir
		require.DirExists(t, dir)
	})
	require.NoDirExists(t, dir)
	require.Equal(t, memory.Bavail*uint64(memory.Bsize) >= 1<<30,
		strings.HasPrefix(dir, "/dev/shm/"), dir)
}
