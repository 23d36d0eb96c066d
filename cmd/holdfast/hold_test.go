//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// startHold starts "holdfast hold job" with arguments, and returns the path of its ready file. Its
// hooks say their event.
func startHold(t *testing.T, redis string, args ...string) (j *job, ready string) {
	t.Helper()
	ready = filepath.Join(t.TempDir(), "ready")
	say := func(more string) string {
		return `exec 3>>"$PIPE.events"; echo $HOLDFAST_EVENT >&3; ` + more
	}
	j = prepareRun(t, redis, append([]string{"job", "--ready-file", ready,
		"--on-acquired", say(`exec sleep 1000`), "--on-lost", say("")}, args...)...)
	j.cmd.Args[1] = "hold"
	j.start(t)
	return j, ready
}

// events returns what the hooks of a hold have said.
func (j *job) events(t *testing.T) string {
	t.Helper()
	for _, entry := range j.cmd.Env {
		if path, is := strings.CutPrefix(entry, "PIPE="); is {
			text, _ := os.ReadFile(path + ".events")
			return strings.ReplaceAll(string(text), "\n", " ")
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// eventually waits for something that must happen.
func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, longest, time.Millisecond)
}

// says waits until a process has printed something, and returns the part in parentheses.
func (j *job) says(t *testing.T, pattern string) (part string) {
	t.Helper()
	eventually(t, func() bool {
		found := regexp.MustCompile(pattern).FindStringSubmatch(j.stderr.String())
		if len(found) > 1 {
			part = found[1]
		}
		return found != nil
	})
	return part
}

func TestHoldIsReadyWhileItHoldsTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do(t, "HSET", "job", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1")
	j, ready := startHold(t, redis.Addr(), "--http", "127.0.0.1:0", "--kind", "fenced",
		"--lease", "9s") // a third of it is how late a loss is noticed
	url := j.says(t, `readiness at (\S+)/readyz`)
	get := func(path string) (status int, body string) {
		response, err := http.Get(url + path)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	j.says(t, "waiting: held by 8743c9c0")
	status, _ := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	_, body := get("/")
	require.JSONEq(t, `{"name": "job", "held": false}`, body)
	status, _ = get("/other")
	require.Equal(t, http.StatusNotFound, status)
	require.False(t, exists(ready))

	for range 2 { // it campaigns again after a loss
		redis.Do(t, "DEL", "job")
		redis.Do(t, "PUBLISH", "redisson_lock__channel:{job}", "0")
		eventually(t, func() bool { return exists(ready) })
		status, _ = get("/readyz")
		require.Equal(t, http.StatusOK, status)
		_, body = get("/")
		var state struct {
			Held            bool
			Owner           string
			Token           int64
			Since, Deadline time.Time
		}
		require.NoError(t, json.Unmarshal([]byte(body), &state))
		require.True(t, state.Held)
		require.Equal(t, "1", redis.DoMap(t, "HGETALL", "job")[state.Owner])
		require.Positive(t, state.Token)
		require.True(t, state.Since.Before(state.Deadline))
		text, err := os.ReadFile(ready)
		require.NoError(t, err)
		require.Contains(t, string(text), state.Owner)
		eventually(t, func() bool { return strings.HasSuffix(j.events(t), "acquired ") })
		// At once, or it might acquire the lock again in between.
		redis.Do(t, "EVAL", `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], '1')`, "1",
			"job", "8743c9c0-0795-4907-87fd-6c719a6b4586:1")
		eventually(t, func() bool { return strings.HasSuffix(j.events(t), "lost ") })
		require.False(t, exists(ready))
		status, _ = get("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, status)
	}
	require.Equal(t, 2, strings.Count(j.stderr.String(), " lost: gone"), "%s", j.stderr)
	j.signal(t, unix.SIGTERM)
	require.Zero(t, j.status(t), "while it waits")
	require.Equal(t, "acquired lost acquired lost ", j.events(t))
}

func TestHoldReleasesTheLockAfterASignal(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		j, ready := startHold(t, redis.Addr(), "-q")
		eventually(t, func() bool { return exists(ready) && j.events(t) != "" })
		j.signal(t, signal)
		require.Zero(t, j.status(t))
		require.Equal(t, "acquired released ", j.events(t))
		require.False(t, exists(ready))
		require.Empty(t, j.stderr.String())
		requireFree(t, redis)
	}
}

// No probe may find a file of a process that cannot know that it has lost the lock.
func TestTheReadyFileDoesNotOutliveTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j, ready := startHold(t, redis.Addr(), "--lease", "6s")
	eventually(t, func() bool { return exists(ready) && j.events(t) != "" })
	j.signal(t, unix.SIGSTOP)
	eventually(t, func() bool { return !exists(ready) })
	j.signal(t, unix.SIGCONT)
	eventually(t, func() bool {
		return exists(ready) && strings.HasPrefix(j.events(t), "acquired lost acquired ")
	})
	j.signal(t, unix.SIGKILL)
	eventually(t, func() bool { return !exists(ready) })
}

func TestHoldCanExitAfterALoss(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j, ready := startHold(t, redis.Addr(), "--exit-on-loss", "--log", "json", "--lease", "9s")
	eventually(t, func() bool { return exists(ready) && j.events(t) != "" })
	redis.Do(t, "DEL", "job")
	require.Equal(t, 76, j.status(t))
	require.Equal(t, "acquired lost ", j.events(t))
	all := messages(t, j.stderr.String())
	require.Equal(t, "job", all[0].Lock)
}

func TestHoldWaitsForAServer(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Kill(t)
	j, ready := startHold(t, redis.Addr(), "--lease", "6s")
	j.says(t, `; holdfast tries again\n`)
	require.False(t, exists(ready))
	redis.Restart(t)
	eventually(t, func() bool { return exists(ready) })
	redis.Kill(t) // the lock is lost, and the next one cannot be acquired
	j.says(t, `lock "job": (lost: |given up, because it was not renewed)`)
	eventually(t, func() bool { return strings.HasSuffix(j.events(t), "lost ") })
	require.False(t, exists(ready))
	redis.Restart(t)
	eventually(t, func() bool { return exists(ready) })
	j.signal(t, unix.SIGTERM)
	require.Zero(t, j.status(t))
	// Who it was may stay for a while: its client does not know whether the server noted that.
	require.Zero(t, redis.DoInt(t, "EXISTS", "job"))
}

func TestHoldRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do(t, "SET", "string", "no lock")
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 64, "expected"},
		{[]string{""}, 64, "the name is empty"},
		{[]string{"job", "--http", "nowhere"}, 64, "--http: "},
		{[]string{"job", "--ready-file", t.TempDir()}, 64, "is not a file"},
		{[]string{"job", "--lease", "1ms"}, 64, "--lease must be at least 100ms"},
		{[]string{"job", "--ready-file", filepath.Join(t.TempDir(), "no", "folder")}, 64,
			"--ready-file: "},
		{[]string{"string"}, 74, "WRONGTYPE"},
	} {
		o := run(t, append([]string{"hold", "-r", redis.Addr()}, test.args...)...)
		require.Equal(t, test.status, o.status, "%v: %s", test.args, o.stderr)
		require.Contains(t, o.stderr, test.says, "%v", test.args)
	}
	require.Equal(t, []string{"string"}, keys(t, redis))
}
