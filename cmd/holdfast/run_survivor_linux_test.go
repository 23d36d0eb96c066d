package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// sudo, su and setpriv change the user of a command, which run may not kill then.
func TestRunNamesWhatItMayNotKillAndDoesNotSayThatItWasKilled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can change the user of a process
	}
	redis := redistest.Start(t)
	const changed = `"$@" 'echo changed >&3; exec sleep 60'`
	for name, script := range map[string]string{
		"the command":               "exec " + changed,
		"a process that it started": changed + " & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lock := "job of " + name
			args := append([]string{"--lease", "2s", "--kill-after", "100ms", lock},
				shell("echo in >&3; "+script)...)
			j := prepareRun(t, redis.Addr(), append(append(args, "$0"),
				become("nobody", "sh", "-c")...)...)
			j.cmd.Args = become("bound", j.cmd.Args...)
			j.cmd.Path = j.cmd.Args[0]
			j.start(t)
			j.line(t, "in")
			j.line(t, "changed")
			redis.Do(t, "DEL", lock)
			survivor := regexp.MustCompile(`lock "` + lock + `": cannot kill .*pid (\d+) ` +
				`\(sleep, user 65534\).* continues without the lock: operation not permitted`)
			require.Eventually(t, func() bool {
				return survivor.MatchString(j.stderr.String())
			}, longest, time.Millisecond, "%s", j.stderr)
			pid, err := strconv.Atoi(survivor.FindStringSubmatch(j.stderr.String())[1])
			require.NoError(t, err)
			require.NotContains(t, j.stderr.String(), "was killed")
			j.lives(t)
			group, err := unix.Getpgid(pid)
			require.NoError(t, err)
			require.NoError(t, unix.Kill(-group, unix.SIGKILL))
			j.dead(t)
			require.Equal(t, 76, j.status(t), "%s", j.stderr)
			require.Contains(t, j.stderr.String(), "the command has ended\n")
		})
	}
}

func TestRunWarnsOfACommandThatItCouldNotKill(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can become a user who may not kill all
	}
	redis := redistest.Start(t)
	require.NoError(t, os.Chmod(filepath.Dir(binary), 0o755))
	for program, warns := range map[string]bool{"su": true, "ls": false} {
		args := become("nobody", binary, "run", "-r", redis.Addr(), "job", "--", program, "--version")
		o := finish(t, exec.CommandContext(t.Context(), args[0], args[1:]...))
		require.Zero(t, o.status, o.stderr)
		require.Equal(t, warns, strings.Contains(o.stderr, "su changes its user"), o.stderr)
	}
}
