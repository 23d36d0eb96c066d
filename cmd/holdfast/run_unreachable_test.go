//go:build unix

package main

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// startWaiter starts a run that waits for "job", and returns once it is registered and so has its
// last reply for seconds. A wait that is over before that, on a busy machine, is made longer.
func startWaiter(t *testing.T, redis *redistest.Server, args ...string) *job {
	t.Helper()
	for wait := time.Second; ; wait *= 2 {
		j := startRun(t, redis.Addr(), append(append([]string{"-w", wait.String()}, args...),
			"job", "true")...)
		over := false
		require.Eventually(t, func() bool {
			select {
			case <-j.ended:
				over = true
				return true
			default:
				return redis.DoInt(t, "EXISTS", "holdfast_lock_waiters:{job}") > 0
			}
		}, longest, time.Millisecond)
		if !over {
			return j
		}
	}
}

// The last reply said that another has the lock, but nobody knows whether that is still so.
func TestRunNeverSaysThatAnotherHasTheLockIfRedisCannotBeAsked(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*redistest.Server){
		"hangs":   func(s *redistest.Server) { s.Pause(t) },
		"is down": func(s *redistest.Server) { s.Kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			redis.Do(t, "HSET", "job", "7c1f9d0e-0000-4000-8000-000000000000:12", "1")
			j := startWaiter(t, redis, "-q", "-E", "0")
			fault(redis)
			require.Equal(t, 74, j.status(t), "%s", j.stderr)
			require.Contains(t, j.stderr.String(), `holdfast: lock "job": `)
		})
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

// A balancer without a server accepts connections and closes them.
func TestRunThatWaitsForTheConnectionDoesNotDialAllTheTime(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var dials atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			_ = conn.Close()
		}
	}()
	o := run(t, "run", "-w", "600ms", "--redis", listener.Addr().String(), "job", "true")
	require.Equal(t, 74, o.status, o.stderr)
	require.Greater(t, dials.Load(), int64(1), o.stderr)
	require.Less(t, dials.Load(), int64(50), o.stderr)
}

func TestRunDoesNotWaitForWhatNeverPasses(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("secret"))
	j := prepareRun(t, redis.Addr(), "-w", "10m", "job", "true")
	j.cmd.Env = append(j.cmd.Env, "REDISCLI_AUTH=wrong")
	j.start(t)
	require.Equal(t, 74, j.status(t), "%s", j.stderr)
	require.Contains(t, j.stderr.String(), "see --user")
}
