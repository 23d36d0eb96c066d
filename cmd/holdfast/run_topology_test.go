//go:build unix

package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// servers returns the flags for several servers.
func servers(all []*redistest.Server) (flags []string) {
	for _, s := range all {
		flags = append(flags, "--redis", s.Addr())
	}
	return flags
}

func TestRunWithAQuorumOutlivesAMinorityOfItsServers(t *testing.T) {
	t.Parallel()
	// A server that has just started may have forgotten a lock, so it does not count at first.
	const lease = 5 * time.Second
	redis := redistest.StartAll(t, 3)
	for _, s := range redis {
		require.Eventually(t, func() bool {
			_, uptime, _ := strings.Cut(s.DoString(t, "INFO", "server"), "uptime_in_seconds:")
			uptime, _, _ = strings.Cut(uptime, "\r")
			seconds, err := strconv.Atoi(uptime)
			require.NoError(t, err)
			return time.Duration(seconds)*time.Second > lease+time.Second
		}, longest, 50*time.Millisecond)
	}
	flags := append(servers(redis), "--quorum", "--lease", lease.String())
	redis[0].Kill(t) // before
	j := startRun(t, "127.0.0.1:1", stubborn(flags...)...)
	j.line(t, "in")
	for _, s := range redis[1:] {
		require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "job"))
	}
	o := run(t, append(append([]string{"run", "--nonblock"}, flags...), "job", "true")...)
	require.Equal(t, 75, o.status, o.stderr)
	// Without a majority the lock ends.
	end := renewed(t, redis[1])
	redis[1].Pause(t)
	end = end.Add(lease / 3) // a renewal may have come in between
	require.True(t, j.line(t, "TERM").at.Before(end))
	require.True(t, j.dead(t).at.Before(end))
	require.Equal(t, 76, j.status(t))
	o = run(t, append(append([]string{"run", "--nonblock"}, flags...), "job", "true")...)
	require.Equal(t, 74, o.status, o.stderr)
}

func TestRunWorksOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	flags := servers(cluster.Nodes[:1]) // it finds the others
	o := run(t, append(append([]string{"run", "a{b"}, flags...), "true")...)
	require.Equal(t, 64, o.status, o.stderr)
	for _, kind := range []string{"lock", "fair", "read", "write", "fenced"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := "job of " + kind
			node := cluster.Owner(t, cluster.Slot(t, name))
			j := startRun(t, "127.0.0.1:1", append(append([]string{"--kind", kind, name}, flags...),
				shell(`echo "in $HOLDFAST_LOCK" >&3; sleep 1000`)...)...)
			j.line(t, "in "+name)
			require.EqualValues(t, 1, node.DoInt(t, "EXISTS", name))
			wants := kind
			if kind == "read" {
				wants = "write"
			}
			o := run(t, append(append([]string{"run", "-n", "--kind", wants, name}, flags...), "true")...)
			require.Equal(t, 75, o.status, o.stderr)
			waiter := startRun(t, "127.0.0.1:1", append(append([]string{"--kind", wants, name}, flags...),
				shell(`echo in >&3`)...)...)
			require.Eventually(t, func() bool {
				return strings.Contains(waiter.stderr.String(), "waiting")
			}, longest, time.Millisecond)
			j.signal(t, unix.SIGTERM)
			waiter.line(t, "in")
			require.Zero(t, waiter.status(t))
			require.Zero(t, node.DoInt(t, "EXISTS", name))
		})
	}
}
