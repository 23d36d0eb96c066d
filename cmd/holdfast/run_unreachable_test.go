//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// The last reply said that another has the lock, but nobody knows whether that is still so.
func TestRunNeverSaysThatAnotherHasTheLockIfRedisCannotBeAsked(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do(t, "HSET", "job", "7c1f9d0e-0000-4000-8000-000000000000:12", "1")
	for wait := time.Second; ; wait *= 2 { // on a busy machine a wait may be over too soon
		began := time.Now()
		j := startRun(t, redis.Addr(), "-w", wait.String(), "-q", "-E", "0", "job", "true")
		over := false
		require.Eventually(t, func() bool {
			select {
			case <-j.ended:
				over = true
			default:
			}
			// It is registered, and so has its last reply for seconds.
			return over || redis.DoInt(t, "EXISTS", "holdfast_lock_waiters:{job}") > 0
		}, longest, time.Millisecond)
		if over {
			continue
		}
		redis.Pause(t)
		if time.Since(began) > wait { // it may have asked before
			redis.Resume(t)
			j.status(t)
			continue
		}
		require.Equal(t, 74, j.status(t), "%s", j.stderr)
		require.Contains(t, j.stderr.String(), `holdfast: lock "job": `)
		return
	}
}

func TestRunWaitsForTheConnectionAsWell(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Start(t).Addr())
	proxy.Refuse()
	j := startRun(t, proxy.Addr(), append([]string{"-w", "10m", "job"}, shell(`echo in >&3`)...)...)
	require.Eventually(t, func() bool {
		return strings.Contains(j.stderr.String(), "connection refused")
	}, longest, time.Millisecond)
	require.NoError(t, proxy.Accept())
	j.line(t, "in")
	require.Zero(t, j.status(t))
}

func TestRunThatCannotConnectWithinItsWaitSaysWhy(t *testing.T) {
	t.Parallel()
	const wait = 300 * time.Millisecond
	for name, flags := range map[string][]string{
		"down": {"--redis", "127.0.0.1:1"},
		"hung": {"--redis", silent(t)},
		"quorum that is down": {"--quorum", "--redis", "127.0.0.1:1", "--redis", "127.0.0.1:2",
			"--redis", "127.0.0.1:3"},
		"quorum that hangs": {"--quorum", "--redis", silent(t), "--redis", silent(t), "--redis",
			silent(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			o := run(t, append(append([]string{"run", "-q", "-E", "0", "-w", wait.String()}, flags...),
				"job", "true")...)
			require.GreaterOrEqual(t, time.Since(began), wait)
			require.Equal(t, 74, o.status, o.stderr)
			require.Regexp(t, `^holdfast: .* 127\.0\.0\.1:\d+: .*\n$`, o.stderr)
		})
	}
}

func TestRunDoesNotWaitForWhatNeverPasses(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("secret"))
	j := prepareRun(t, redis.Addr(), "-w", "10m", "job", "true")
	j.cmd.Env = append(j.cmd.Env, "REDISCLI_AUTH=wrong")
	j.start(t)
	require.Equal(t, 74, j.status(t), "%s", j.stderr)
	require.Contains(t, j.stderr.String(), "check --user")
}
