//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// stubborn says TERM when it is sent that, and goes on, as does its child.
func stubborn(flags ...string) []string {
	return append(append(flags, "job"), shell(`trap 'echo TERM >&3' TERM; `+ignoresTERM+
		`echo in >&3; `+waits)...)
}

// The server is stopped under a running command. Its clock runs on, so that the lease in Redis ends
// at the instant that a second client read just before. TERM and KILL come earlier.
func TestRunEndsItsCommandBeforeTheLeaseCanEndInAServerThatHangs(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), stubborn("--lease", "6s")...)
	j.line(t, "in")
	// Right after a renewal, so that none can come between the two.
	var end time.Time
	for stopped := false; !stopped; {
		end = renewed(t, redis)
		at := time.Now()
		redis.Pause(t)
		stopped = time.Since(at) < 300*time.Millisecond
		if !stopped { // on a busy machine
			redis.Resume(t)
		}
	}
	term := j.line(t, "TERM")
	kill := j.dead(t)
	require.True(t, term.at.Before(end), "TERM came %v after the end", term.at.Sub(end))
	require.True(t, kill.at.Before(end), "KILL came %v after the end", kill.at.Sub(end))
	require.Equal(t, 76, j.status(t))
	require.Contains(t, j.stderr.String(), "not renewed, and may be lost")
	require.NotContains(t, j.stderr.String(), "rueidis", "advice is for users of the program")
}
