//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// longest bounds how long a test waits for what must happen, on a machine that may be busy.
const longest = 30 * time.Second

// text is output of a process. It is safe for concurrent use.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// job is a "holdfast run" that a test has started. Its command has a pipe, the path of which is in
// $PIPE: what is written to it comes in lines, and it ends when no process has it open.
type job struct {
	cmd    *exec.Cmd
	lines  chan moment
	stderr *text
	ended  chan struct{}
}

// moment is a line of a job, and when it came. The last one has eof set.
type moment struct {
	line string
	at   time.Time
	eof  bool
}

// shell returns the arguments that run a script as a command. Its descriptor 3 is the pipe.
func shell(script string) []string {
	return []string{"--", "sh", "-c", `exec 3>"$PIPE"; ` + script}
}

const (
	// ignoresTERM is a process in the background that only SIGKILL ends.
	ignoresTERM = `(trap "" TERM HUP INT QUIT; exec sleep 1000) & `
	// waits goes on for ever, whichever signals are trapped.
	waits = `while :; do sleep 1000 & wait $!; done`
)

// startRun starts "holdfast run" with arguments. The clean-up kills it.
func startRun(t *testing.T, redis string, args ...string) *job {
	t.Helper()
	j := prepareRun(t, redis, args...)
	j.start(t)
	return j
}

// prepareRun returns a job that start starts.
func prepareRun(t *testing.T, redis string, args ...string) *job {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	j := &job{cmd: exec.Command(binary, append([]string{"run"}, args...)...),
		lines: make(chan moment, 1024), stderr: new(text), ended: make(chan struct{})}
	j.cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+redis, "PIPE="+fifo)
	j.cmd.Stderr = j.stderr
	// The pipe is open for writing as well until the command has it, so that it does not end.
	reader, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	writer, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = writer.Close() })
	go func() {
		defer reader.Close()
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadString('\n')
			at := time.Now()
			if err != nil {
				j.lines <- moment{at: at, eof: true}
				return
			}
			_ = writer.Close() // the command has it
			j.lines <- moment{line: strings.TrimSuffix(line, "\n"), at: at}
		}
	}()
	return j
}

func (j *job) start(t *testing.T) {
	t.Helper()
	require.NoError(t, j.cmd.Start())
	go func() {
		_ = j.cmd.Wait()
		close(j.ended)
	}()
	t.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		<-j.ended
		if t.Failed() {
			t.Logf("holdfast %v said:\n%s", j.cmd.Args[1:], j.stderr)
		}
	})
}

// next returns the next line of the job's pipe, or its end.
func (j *job) next(t *testing.T) (m moment) {
	t.Helper()
	select {
	case m = <-j.lines:
	case <-time.After(longest):
		require.FailNow(t, "the job says nothing", "%s", j.stderr)
	}
	return m
}

// line requires a line.
func (j *job) line(t *testing.T, want string) moment {
	t.Helper()
	m := j.next(t)
	require.Equal(t, want, m.line, "%s", j.stderr)
	require.False(t, m.eof)
	return m
}

// dead requires that nobody has the pipe any more: the command and its descendants have ended.
func (j *job) dead(t *testing.T) moment {
	t.Helper()
	m := j.next(t)
	require.True(t, m.eof, m.line)
	return m
}

// lives requires that the job has said nothing, so that it has not ended either.
func (j *job) lives(t *testing.T) {
	t.Helper()
	select {
	case m := <-j.lines:
		require.FailNow(t, "the job has ended or said something", "%+v\n%s", m, j.stderr)
	default:
	}
}

// status waits for the end of run, and returns its exit status as a shell has it.
func (j *job) status(t *testing.T) int {
	t.Helper()
	select {
	case <-j.ended:
	case <-time.After(longest):
		require.FailNow(t, "run has not ended", "%s", j.stderr)
	}
	s := j.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if s.Signaled() {
		return 1000 + int(s.Signal())
	}
	return s.ExitStatus()
}

func (j *job) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, j.cmd.Process.Signal(s))
}

// ranUnder runs "holdfast run" to its end, with the server in the environment.
func ranUnder(t *testing.T, redis *redistest.Server, args ...string) outcome {
	t.Helper()
	return run(t, append([]string{"run", "--redis", redis.Addr()}, args...)...)
}

// keys returns the keys of locks. Those that say who a client was may stay for a while: a run that
// ends asks the server to delete its own, but does not wait for long.
func keys(t *testing.T, redis *redistest.Server) []string {
	t.Helper()
	return redis.Keys(t)
}

// requireFree requires that nothing is left of any lock.
func requireFree(t *testing.T, redis *redistest.Server) {
	t.Helper()
	require.Empty(t, keys(t, redis))
}

// expiry returns when the lease of "job" ends in Redis, on the clock of this machine.
func expiry(t *testing.T, redis *redistest.Server) time.Time {
	t.Helper()
	return time.UnixMilli(redis.DoInt(t, "PEXPIRETIME", "job"))
}

// introduced waits until Redis knows which process the job is: the job tells it in the background.
func (j *job) introduced(t *testing.T, redis *redistest.Server) {
	t.Helper()
	pid := strconv.Itoa(j.cmd.Process.Pid)
	locktest.Eventually(t, func() bool {
		return slices.ContainsFunc(redis.DoStrings(t, "KEYS", "holdfast_client:*"),
			func(key string) bool { return redis.DoString(t, "HGET", key, "pid") == pid })
	}, "Redis does not know the process of the job")
}

// renewed waits until the lease of "job" was renewed, and returns when it ends now. The next
// renewal comes a third of the lease later.
func renewed(t *testing.T, redis *redistest.Server) (end time.Time) {
	t.Helper()
	first := expiry(t, redis)
	require.Eventually(t, func() bool {
		end = expiry(t, redis)
		return end.After(first)
	}, longest, time.Millisecond)
	return end
}

// forEver is a command that says "in" when it runs.
func forEver() []string {
	return append([]string{"job"}, shell(`echo in >&3; sleep 1000`)...)
}

// guards returns the processes that guard the command of a run.
func guards(t *testing.T, run int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		args := strings.Split(string(line), "\x00")
		if fields[1] == strconv.Itoa(run) && len(args) > 1 && args[1] == "guard" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}
