//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// A cron job on two machines: of two starts at the same time, exactly one runs. In every tenth pair
// the winner is killed, and its lock is free when its lease has ended.
func TestOneOfTwoRunsAtTheSameTimeRuns(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	pairs := locktest.Times(t, "HOLDFAST_RUN_PAIRS", 30)
	ran := filepath.Join(t.TempDir(), "ran") // a line for each command that runs
	for pair := range pairs {
		kills, lease := pair%10 == 9, "30s"
		if kills {
			lease = "3s" // of the dead, which is waited for
		}
		var both [2]*job
		for i := range both {
			// The winner runs until the other one has decided.
			both[i] = prepareRun(t, redis.Addr(), append([]string{"--nonblock", "--lease", lease,
				"nightly"}, shell(`echo "$HOLDFAST_OWNER" >>"$RAN"; echo in >&3; read x`)...)...)
			both[i].cmd.Env = append(both[i].cmd.Env, "RAN="+ran)
		}
		stdin := [2]*os.File{}
		for i, j := range both {
			read, write, err := os.Pipe()
			require.NoError(t, err)
			j.cmd.Stdin, stdin[i] = read, write
		}
		for _, j := range both {
			j.start(t)
		}
		var winner, loser int
		select {
		case <-both[0].ended:
			winner, loser = 1, 0
		case <-both[1].ended:
			winner, loser = 0, 1
		case <-time.After(longest):
			require.FailNow(t, "both run, or none has decided")
		}
		require.Equal(t, 75, both[loser].status(t), "%v", both[loser].stderr)
		require.Contains(t, both[loser].stderr.String(), "not acquired: held by")
		both[winner].line(t, "in")
		if kills {
			both[winner].signal(t, unix.SIGKILL)
			both[winner].dead(t)
		} else {
			_, err := stdin[winner].WriteString("\n")
			require.NoError(t, err)
			require.Zero(t, both[winner].status(t))
		}
		for i := range both {
			require.NoError(t, stdin[i].Close())
			require.NoError(t, both[i].cmd.Stdin.(*os.File).Close())
		}
		text, err := os.ReadFile(ran)
		require.NoError(t, err)
		require.Equal(t, pair+1, strings.Count(string(text), "\n"), "one ran")
		if kills {
			require.NotZero(t, redis.DoInt(t, "EXISTS", "nightly"), "a dead machine keeps the lock")
			require.Eventually(t, func() bool { return redis.DoInt(t, "EXISTS", "nightly") == 0 },
				longest, time.Millisecond)
			redis.Do(t, "FLUSHALL") // who it was is there for longer
		} else {
			require.Empty(t, redis.Keys(t)) // the loser may not have deleted its identity
		}
	}
	t.Logf("%d pairs: one of two ran each time", pairs)
}
