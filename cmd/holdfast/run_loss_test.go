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

// inTime plays a scene on new servers, three times at most, until both signals came before the end
// of the lease. If the machine stands still, a guard is late, or this test when it looks at the
// clock. A guard that reckons wrongly is late each time.
func inTime(t *testing.T, scene func(redis *redistest.Server) (end time.Time, term, kill moment)) {
	t.Helper()
	for range 3 {
		end, term, kill := scene(redistest.Start(t))
		if term.at.Before(end) && kill.at.Before(end) {
			return
		}
		t.Logf("TERM came %v and KILL %v after the end", term.at.Sub(end), kill.at.Sub(end))
	}
	require.Fail(t, "the command outlived its lease each time")
}

// The server is stopped under a running command. Its clock runs on, so that the lease in Redis ends
// at the instant that a second client read just before. TERM and KILL come earlier.
func TestRunEndsItsCommandBeforeTheLeaseCanEndInAServerThatHangs(t *testing.T) {
	t.Parallel()
	inTime(t, func(redis *redistest.Server) (end time.Time, term, kill moment) {
		j := startRun(t, redis.Addr(), stubborn("--lease", "6s")...)
		j.line(t, "in")
		// Right after a renewal, so that none can come between the two.
		for stopped := false; !stopped; {
			end = renewed(t, redis)
			at := time.Now()
			redis.Pause(t)
			stopped = time.Since(at) < 300*time.Millisecond
			if !stopped { // on a busy machine
				redis.Resume(t)
			}
		}
		term, kill = j.line(t, "TERM"), j.dead(t)
		require.Equal(t, 76, j.status(t))
		require.Contains(t, j.stderr.String(), "not renewed, and may be lost")
		require.NotContains(t, j.stderr.String(), "rueidis", "advice is for users of the program")
		return end, term, kill
	})
}
