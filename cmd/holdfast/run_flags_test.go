//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

func TestRunTakesACommandForAShellAsFlockDoes(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, args := range [][]string{
		{"job", "-c", "echo a | tr a b; exit 3"}, {"-c", "echo a | tr a b; exit 3", "job"},
		{"--shell", "job", "--", "echo a | tr a b;", "exit 3"},
	} {
		require.Equal(t, outcome{stdout: "b\n", status: 3}, ranUnder(t, redis, args...), "%v", args)
	}
	o := ranUnder(t, redis, "job", "-c", "true", "--", "false")
	require.Equal(t, 64, o.status)
	require.Contains(t, o.stderr, "exclude each other")
}

func TestRunShowsItsLabel(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"--label", "nightly\x1b backup"}, forEver()...)...)
	j.line(t, "in")
	j.introduced(t, redis)
	o := ranUnder(t, redis, "-n", "job", "true")
	require.Contains(t, o.stderr, `held by nightly\x1b backup on `)
	for _, command := range []string{"ls", "inspect"} {
		o := run(t, append([]string{command, "-r", redis.Addr()}, "job")...)
		require.Contains(t, o.stdout, `nightly\x1b backup`, command)
	}
	j.signal(t, syscall.SIGTERM)
	j.dead(t)
}

func TestOthersSeeSinceWhenARunHoldsTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	began := time.Now().Truncate(time.Millisecond)
	j := startRun(t, redis.Addr(), forEver()...)
	j.line(t, "in")
	var lock struct{ Holders []struct{ Since time.Time } }
	require.Eventually(t, func() bool { // the command does not wait for the note
		o := run(t, "inspect", "--json", "-r", redis.Addr(), "job")
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &lock))
		return !lock.Holders[0].Since.IsZero()
	}, longest, time.Millisecond)
	require.WithinRange(t, lock.Holders[0].Since, began, time.Now())
	require.Contains(t, run(t, "inspect", "-r", redis.Addr(), "job").stdout, ", held for ")
	require.Contains(t, run(t, "ls", "-r", redis.Addr()).stdout, " HELD ")
	j.signal(t, syscall.SIGTERM)
	j.dead(t)
	j.status(t)
	requireFree(t, redis)
	// The note goes with the process, unless that stands still as it ends.
	locktest.Eventually(t, func() bool {
		redis.Do(t, "FLUSHALL")
		require.Zero(t, ranUnder(t, redis, "job", "true").status)
		return redis.DoInt(t, "DBSIZE") == 0
	}, "a run leaves behind who it was")
}

func TestRunWaitsForReplicas(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	o := ranUnder(t, redis, "--sync-replicas", "1", "job", "false")
	require.Equal(t, 74, o.status)
	require.Contains(t, o.stderr, "only 0 of 1 replicas")
	require.NotContains(t, o.stderr, "Options.")
	o = ranUnder(t, redis, "--sync-replicas", "connected", "job", "true")
	require.Zero(t, o.status)
	require.Contains(t, o.stderr, "pass --sync-replicas 1 to")
	requireFree(t, redis)
}

// A server of a quorum that has just started may have forgotten a lock, unless it never forgets.
func TestRunCountsARestartedServerAtOnceIfItForgetsNothing(t *testing.T) {
	t.Parallel()
	flags := append(servers(redistest.StartAll(t, 3)), "--quorum", "--lease", "10m", "-n", "job")
	o := run(t, append(append([]string{"run"}, flags...), "true")...)
	require.NotZero(t, o.status)
	require.Contains(t, o.stderr, "pass --fsync-always")
	o = run(t, append(append([]string{"run", "--fsync-always"}, flags...), "true")...)
	require.Equal(t, outcome{}, o)
}

// messages returns the objects that a run has printed with --log json.
func messages(t *testing.T, text string) (all []message) {
	t.Helper()
	for line := range strings.Lines(text) {
		var m message
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		require.WithinDuration(t, time.Now(), m.Time, time.Hour)
		m.Time = time.Time{}
		all = append(all, m)
	}
	return all
}

type message struct {
	Time             time.Time
	Level, Msg, Lock string
	Status           int
}

func TestRunPrintsMessagesAsJSON(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"--log", "json", "--lease", "9s"}, forEver()...)...)
	j.line(t, "in")
	j.introduced(t, redis)
	o := ranUnder(t, redis, "--log", "json", "-n", "job", "true")
	require.Equal(t, 75, o.status)
	all := messages(t, o.stderr)
	require.Len(t, all, 1)
	require.Regexp(t, `^not acquired: held by run sh on `, all[0].Msg)
	all[0].Msg = ""
	require.Equal(t, message{Level: "ERROR", Lock: "job", Status: 75}, all[0])
	waiter := startRun(t, redis.Addr(), "--log", "json", "job", "true")
	require.Eventually(t, func() bool {
		return strings.HasSuffix(waiter.stderr.String(), "}\n")
	}, longest, time.Millisecond)
	require.Regexp(t, `^waiting: held by `, messages(t, waiter.stderr.String())[0].Msg)
	redis.Do(t, "DEL", "job")
	j.dead(t)
	require.Equal(t, 76, j.status(t))
	all = messages(t, j.stderr.String())
	require.Equal(t, "WARN", all[0].Level)
	require.Regexp(t, `^lost: gone .*the command is being ended$`, all[0].Msg)
	require.Zero(t, waiter.status(t))
}

func TestRunWritesMetrics(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	path := filepath.Join(t.TempDir(), "nightly.prom")
	has := func(pattern string) bool {
		text, _ := os.ReadFile(path)
		return regexp.MustCompile(`(?m)^holdfast_` + pattern + `$`).Match(text)
	}
	j := startRun(t, redis.Addr(), append([]string{"--metrics-file", path, "--lease", "9s"},
		forEver()...)...)
	j.line(t, "in")
	require.Eventually(t, func() bool { return has(`lock_held\{.*holdfast_lock_name="job"\} 1`) },
		longest, time.Millisecond)
	require.Equal(t, 75, ranUnder(t, redis, "-n", "--metrics-file", path, "job", "true").status)
	require.True(t, has(`lock_held\{.*\} 1`), "whoever did not get the lock changes nothing")
	redis.Do(t, "DEL", "job")
	j.dead(t)
	require.Equal(t, 76, j.status(t))
	for _, pattern := range []string{
		`lock_lost_total\{.*error_type="gone"\} 1`, `lock_held\{.*\} 0`, `run_exit_status\{.*\} 76`,
		`lock_acquire_duration_seconds_count\{.*="not_acquired",error_type="not_acquired"\} 1`,
		`lock_acquire_duration_seconds_count\{.*="acquired",.*="free"\} 1`,
	} {
		require.True(t, has(pattern), pattern)
	}
	require.True(t, has(`run_success_timestamp_seconds\{.*\} 0`), "no success yet")
	require.Equal(t, outcome{}, ranUnder(t, redis, "--metrics-file", path, "job", "true"))
	require.True(t, has(`run_success_timestamp_seconds\{holdfast_lock_name="job"\} \d+.*`))
	require.True(t, has(`run_exit_status\{.*\} 0`))
	o := run(t, "run", "-r", "127.0.0.1:1", "--metrics-file", path, "job", "true")
	require.Equal(t, 74, o.status)
	require.True(t, has(`lock_acquire_duration_seconds_count\{.*error_type="no_connection"\} 1`))
	o = ranUnder(t, redis, "--metrics-file", filepath.Join(path, "no-folder"), "job", "true")
	require.Zero(t, o.status, "metrics are not worth a failure")
	require.Contains(t, o.stderr, "cannot write --metrics-file: ")
}

// A refused command is noted in ACL LOG, where an operator looks for attacks.
func TestARunWithTheRightsOfTheDocumentIsRefusedNothing(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for kind, heading := range map[string]string{
		"lock": "Plain locks", "fenced": "Fenced locks", "fair": "Fair locks",
		"read": "Read-write locks", "write": "Read-write locks",
	} {
		rules := slices.Concat(doctable.Rules(t, "../..", heading)...)
		redis.Do(t, append([]string{"ACL", "SETUSER", kind, "reset", "on", ">secret", "resetchannels",
			"~holdfast_client:*", "+cluster|slots"}, rules...)...)
		redis.Do(t, "ACL", "LOG", "RESET")
		name, other := "order:"+kind, map[string]string{"read": "write"}[kind]
		j := startRun(t, redis.Addr(), append([]string{"--kind", cmp.Or(other, kind), name},
			shell(`echo in >&3; sleep 1000`)...)...)
		j.line(t, "in")
		j.introduced(t, redis)
		as := []string{"--user", kind, "--password-file", passwordFile(t), "--kind", kind, name}
		waiter := startRun(t, redis.Addr(), append(as, shell(`echo in >&3`)...)...)
		require.Eventually(t, func() bool {
			return strings.Contains(waiter.stderr.String(), ": waiting: held by ")
		}, longest, time.Millisecond, kind)
		o := run(t, slices.Concat([]string{"run", "-n", "-r", redis.Addr()}, as, []string{"true"})...)
		require.Equal(t, 75, o.status, o.stderr)
		require.Contains(t, o.stderr, " held by "+map[string]string{"read": "writer ",
			"write": "writer "}[kind]+"run sh on ")
		j.signal(t, syscall.SIGTERM)
		waiter.line(t, "in")
		require.Zero(t, waiter.status(t))
		require.Empty(t, redis.Do(t, "ACL", "LOG"), kind)
	}
}

func passwordFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(path, []byte("secret\n"), 0o600))
	return path
}
