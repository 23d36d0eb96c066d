//go:build unix

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestRunWithAtLeastKeepsTheLockHoweverItsCommandEnds(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		j := prepareRun(t, redis.Addr(), "--at-least", "10h", "job", "--", "sh", "-c", "read x; "+script)
		stdin, err := j.cmd.StdinPipe()
		require.NoError(t, err)
		j.start(t)
		j.introduced(t, redis) // a run that ends waits for that only for a moment
		require.NoError(t, stdin.Close())
		require.Equal(t, want, j.status(t), script)
		require.Empty(t, hesitates.ReplaceAllString(j.stderr.String(), ""), script)
		left := time.Until(expiry(t, redis))
		require.True(t, time.Hour < left && left <= 10*time.Hour, left)
		require.Equal(t, 75, ranUnder(t, redis, "-n", "job", "true").status)
		ls := run(t, "ls", "--redis", redis.Addr())
		require.Regexp(t, `job +\S+ +run sh on .* +1 +\d+h`, ls.stdout)
		redis.Do(t, "FLUSHALL")
	}
}

// SIGKILL is to come after this time, which is longer than the test.
var never = []string{"--lease", "10h", "--kill-after", "3h"}

func TestRunEndsACommandThatRunsForTooLong(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, of := range []string{"term", "ignore"} {
		args := append([]string{"--on-lost", of, "--max-runtime", "50ms"}, never...)
		o := ranUnder(t, redis, append(args, "job", "--", "sleep", "1000")...)
		require.Equal(t, 124, o.status)
		require.Equal(t, "holdfast: lock \"job\": the command has run for 50ms (--max-runtime), "+
			"and is being ended\n", o.stderr)
		requireFree(t, redis)
	}
	require.Equal(t, outcome{}, ranUnder(t, redis, "--max-runtime", "10h", "job", "true"))
}

// The lock is renewed meanwhile, after 3 s, which must not keep the command alive: SIGTERM comes
// after 1 s, and SIGKILL after 4 s.
func TestRunKillsACommandThatDoesNotEndAfterItsTime(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), stubborn("--lease", "9s", "--max-runtime", "1s")...)
	var said []string
	for m := j.next(t); !m.eof; m = j.next(t) {
		said = append(said, m.line)
	}
	require.Equal(t, 124, j.status(t))
	require.Contains(t, j.stderr.String(), "has run for 1s (--max-runtime), and is being ended\n")
	if slices.Contains(said, "TERM") { // else SIGTERM came before the command caught it
		require.Contains(t, j.stderr.String(), "the command was killed\n")
	}
	requireFree(t, redis)
}
