package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// consul lock did not forward SIGTERM: hashicorp/consul#797.
func TestRunForwardsAllSignalsThatCanBeCaught(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	signals := []syscall.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGWINCH, unix.SIGCONT, 64}
	traps := ""
	for _, s := range signals {
		traps += fmt.Sprintf("trap 'echo %d >&3' %d; ", s, s)
	}
	j := startRun(t, redis.Addr(), append([]string{"job"},
		shell(traps+`echo in >&3; `+waits)...)...)
	j.line(t, "in")
	for _, s := range signals {
		j.signal(t, s)
		j.line(t, fmt.Sprint(int(s)))
	}
	j.signal(t, unix.SIGKILL)
	j.dead(t)
}

// consul lock left orphans behind on SIGHUP and SIGQUIT: hashicorp/consul#1210, #2489.
func TestRunThatIsHungUpOrQuitLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for signal, want := range map[syscall.Signal]int{
		unix.SIGHUP: 129, unix.SIGQUIT: 131,
	} {
		// Non-interactive shells have what is in the background ignore SIGINT and SIGQUIT.
		j := startRun(t, redis.Addr(), append([]string{"--kill-after", "100ms", "job"},
			shell(ignoresTERM+`sleep 1000 & echo in >&3; wait`)...)...)
		j.line(t, "in")
		j.signal(t, signal)
		j.dead(t)
		require.Equal(t, want, j.status(t), "%s", j.stderr)
		requireFree(t, redis)
	}
}

// Grandchildren survived consul lock, if it was killed or lost the lock: hashicorp/consul#2022.
func TestRunThatIsKilledTakesItsGrandchildrenAlong(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, test := range []struct{ name, script string }{
		{"a child", `echo in >&3; exec sleep 1000`},
		{"a grandchild", ignoresTERM + `echo in >&3; sleep 1000`},
		{"an orphan", `(` + ignoresTERM + `); echo in >&3; sleep 1000`},
		{"stopped", ignoresTERM + `echo in >&3; kill -STOP 0`},
	} {
		j := startRun(t, redis.Addr(), append([]string{"job"}, shell(test.script)...)...)
		j.line(t, "in")
		pids := guards(t, j.cmd.Process.Pid)
		require.Len(t, pids, 1)
		j.signal(t, unix.SIGKILL)
		j.dead(t)
		require.Eventually(t, func() bool { return unix.Kill(pids[0], 0) != nil }, longest,
			time.Millisecond, "%s: the guard ends as well", test.name)
		require.EqualValues(t, 1, redis.DoInt(t, "DEL", "job"), test.name) // its lease runs on
	}
}

// hashicorp/consul#2022 again. And consul lock noticed a loss up to 90 s late:
// hashicorp/consul#9788. Here it takes a third of the lease.
func TestRunThatLosesTheLockTakesItsGrandchildrenAlong(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"--lease", "6s", "job"},
		shell(`trap 'echo TERM >&3; exit 0' TERM; `+ignoresTERM+
			`echo in >&3; `+waits)...)...)
	j.line(t, "in")
	end := expiry(t, redis)
	redis.Do(t, "DEL", "job")
	require.True(t, j.line(t, "TERM").at.Before(end))
	require.True(t, j.dead(t).at.Before(end))
	require.Equal(t, 76, j.status(t))
	require.Contains(t, j.stderr.String(), `lock "job": lost: `)
	require.Contains(t, j.stderr.String(), "the command is being ended")
	requireFree(t, redis)
}

func TestRunEndsWhatTheCommandLeavesBehindBeforeItReleasesTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"job"},
		shell(`trapped=$(mktemp); (trap 'echo TERM >&3; exit' TERM; rm "$trapped"; sleep 1000 & wait) &
			while [ -e "$trapped" ]; do sleep 0.01; done; echo in >&3; exit 3`)...)...)
	j.line(t, "in")
	j.line(t, "TERM")
	j.dead(t)
	require.Equal(t, 3, j.status(t))
	require.Contains(t, j.stderr.String(), "its remaining processes are being ended")
	requireFree(t, redis)
	// What has left the group when the command ends is left alone.
	o := ranUnder(t, redis, "job", "--", "sh", "-c",
		`left=$(setsid sh -c 'sleep 0.5 >/dev/null 2>&1 & echo yes'); exit 4`)
	require.Equal(t, outcome{status: 4}, o)
}

func TestRunThatIsStoppedHasItsCommandKilledBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	inTime(t, func(redis *redistest.Server) (end time.Time, term, kill moment) {
		j := startRun(t, redis.Addr(), stubborn("--lease", "9s")...)
		j.line(t, "in")
		j.signal(t, unix.SIGSTOP)
		end = expiry(t, redis) // it is not renewed any more
		term, kill = j.line(t, "TERM"), j.dead(t)
		j.signal(t, unix.SIGCONT)
		require.Equal(t, 76, j.status(t))
		return end, term, kill
	})
}

// age returns for how long a process has been there.
func age(t *testing.T, pid int) time.Duration {
	t.Helper()
	found, err := os.Stat("/proc/" + strconv.Itoa(pid))
	require.NoError(t, err)
	return time.Since(found.ModTime())
}

func TestRunReplacesAGuardThatWasKilled(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"job"},
		shell(ignoresTERM+`echo in >&3; sleep 1000`)...)...)
	j.line(t, "in")
	guard := func() (pid int) {
		require.Eventually(t, func() bool {
			pids := guards(t, j.cmd.Process.Pid)
			if len(pids) == 1 {
				pid = pids[0]
			}
			return len(pids) == 1
		}, longest, time.Millisecond)
		return pid
	}
	old := guard()
	// A guard that has just begun is not replaced.
	require.Eventually(t, func() bool { return age(t, old) > 3*time.Second }, longest,
		10*time.Millisecond)
	require.NoError(t, unix.Kill(old, unix.SIGKILL))
	require.Eventually(t, func() bool { return unix.Kill(old, 0) != nil }, longest,
		time.Millisecond)
	replaced := guard()
	require.NotEqual(t, old, replaced)
	j.lives(t)
	// One that dies at once would do so again: nothing would watch over the command. On a busy machine
	// some may have lived for a second before they are killed.
	require.Eventually(t, func() bool {
		for _, pid := range guards(t, j.cmd.Process.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case m := <-j.lines:
			return m.eof
		default:
			return false
		}
	}, longest, time.Millisecond)
	require.Equal(t, 76, j.status(t))
	requireFree(t, redis)
}

// timeout(1) and the jobs of an interactive shell have groups of their own.
func TestRunTakesThoseAlongThatHaveLeftTheGroup(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	const limited = `timeout 1000 sh -c 'trap "" TERM; echo in >&3; while :; do sleep 1000; done'`
	for _, test := range []struct {
		name, script string
		end          func(j *job)
		status       int
	}{
		{"lost", limited + `; :`, func(*job) { redis.Do(t, "DEL", "job") }, 76},
		{"terminated", limited + `; :`, func(j *job) { j.signal(t, unix.SIGTERM) }, 143},
		{"killed", limited + `; :`, func(j *job) { j.signal(t, unix.SIGKILL) }, 1009},
		{"left behind", `exec 4<&0; ` + limited + ` & read x <&4; exit 5`, func(*job) {}, 5},
	} {
		j := prepareRun(t, redis.Addr(), append([]string{"--lease", "9s", "--kill-after", "100ms",
			"job"}, shell(test.script)...)...)
		stdin, err := j.cmd.StdinPipe()
		require.NoError(t, err)
		j.start(t)
		j.line(t, "in")
		require.NoError(t, stdin.Close())
		test.end(j)
		j.dead(t)
		require.Equal(t, test.status, j.status(t), "%s: %s", test.name, j.stderr)
		redis.Do(t, "DEL", "job")
	}
}

// nohup and shells in scripts have signals ignored.
func TestRunAndItsCommandIgnoreWhatWasIgnoredBefore(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := prepareRun(t, redis.Addr(), append([]string{"job"},
		shell(`echo in >&3; kill -HUP $$; kill -INT $$; echo still >&3; exec sleep 1000`)...)...)
	arguments := append([]string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`}, j.cmd.Args...)
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	j.cmd.Path, j.cmd.Args = shell, arguments
	j.start(t)
	j.line(t, "in")
	j.line(t, "still")
	j.signal(t, unix.SIGHUP)
	j.signal(t, unix.SIGINT)
	j.signal(t, unix.SIGTERM)
	j.dead(t)
	require.Equal(t, 143, j.status(t))
}

func TestRunLeavesNoFilesOpenInTheCommand(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	script := []string{"sh", "-c", `for fd in /proc/$$/fd/*; do echo ${fd##*/}; done`}
	cmd := exec.Command(script[0], script[1:]...)
	cmd.Stderr = new(strings.Builder) // a pipe
	want, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, outcome{stdout: string(want)},
		ranUnder(t, redis, append([]string{"job", "--"}, script...)...))
}
