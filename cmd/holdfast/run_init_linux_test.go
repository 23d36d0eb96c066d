package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// Run is PID 1 of a container whose command it is.
func TestRunReapsOrphansAndStillKnowsTheStatusOfItsCommand(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := prepareRun(t, redis.Addr(), append([]string{"job"},
		shell(`trap 'exit 7' USR1; (true & echo $! >&3); echo in >&3; `+waits)...)...)
	j.cmd.Args = become("subreaper", j.cmd.Args...)
	j.cmd.Path = j.cmd.Args[0]
	j.start(t)
	orphan, err := strconv.Atoi(j.next(t).line)
	require.NoError(t, err)
	j.line(t, "in")
	require.Eventually(t, func() bool { return unix.Kill(orphan, 0) != nil }, longest,
		time.Millisecond, "it is not a zombie for ever")
	j.signal(t, unix.SIGUSR1)
	require.Equal(t, 7, j.status(t))
}

// The job server of make is two of them, and flock and shells use others.
func TestCommandHasTheFileDescriptorsThatRunWasGiven(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := prepareRun(t, redis.Addr(), "job", "--", "sh", "-c", "echo three >&3; echo four >&4")
	var paths []string
	for _, name := range []string{"three", "four"} {
		path := filepath.Join(t.TempDir(), name)
		file, err := os.Create(path)
		require.NoError(t, err)
		defer file.Close()
		j.cmd.ExtraFiles = append(j.cmd.ExtraFiles, file)
		paths = append(paths, path)
	}
	j.start(t)
	require.Zero(t, j.status(t), "%s", j.stderr)
	for i, want := range []string{"three\n", "four\n"} {
		text, err := os.ReadFile(paths[i])
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}
