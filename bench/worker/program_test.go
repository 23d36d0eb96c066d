package worker_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/worker"
)

// foreign makes the test's own program a worker that is not started as one of this program.
const foreign = "foreign"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == foreign || worker.Requested() {
		worker.Handle("double", func(n int) (int, error) { return 2 * n, nil })
		worker.Handle("pid", func(struct{}) (int, error) { return os.Getpid(), nil })
		worker.Serve()
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T) *worker.Program {
	self, err := os.Executable()
	require.NoError(t, err)
	return &worker.Program{Command: []string{self, foreign}}
}

func call[Out any](t *testing.T, p *worker.Process, task string, in any) Out {
	t.Helper()
	out, err := worker.Call[Out](t.Context(), p, task, in)
	require.NoError(t, err)
	return out
}

// stopped reports whether the system has stopped a process.
func stopped(t *testing.T, pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, state, ok := strings.Cut(string(raw), ") ")
	require.True(t, ok)
	return state[0] == 'T'
}

func TestAnotherProgramIsStoppedWhileItHasNoTask(t *testing.T) {
	own, err := worker.Start(worker.AnyCore, nil)
	require.NoError(t, err)
	defer own.Stop()
	other, err := worker.Start(worker.AnyCore, program(t))
	require.NoError(t, err)
	defer other.Stop()
	for i := range 3 {
		ownPID := call[int](t, own, "pid", struct{}{})
		otherPID := call[int](t, other, "pid", struct{}{})
		require.Eventually(t, func() bool {
			return stopped(t, otherPID)
		}, 5*time.Second, time.Millisecond)
		require.False(t, stopped(t, ownPID))
		require.Equal(t, 2*i, call[int](t, other, "double", i))
	}
}
