package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestFairLocksThatShareAQueueAreReportedOncePerPair(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	use := func(names ...string) {
		for _, name := range names {
			unlock(t, take(t, c.NewFairLock(name), time.Minute))
		}
	}
	warnings := func() int { return len(log.With("share one queue")) }

	use("x", "x", "y", "{z}", "{x}y", "{{x}}", "{x", "x}")
	unlock(t, take(t, c.NewLock("{x}"), time.Minute)) // which has no queue
	_ = c.NewFairLock("{x}")
	use("a")
	require.Zero(t, warnings())

	use("{x}")
	eventually(t, func() bool { return warnings() == 1 }, "x and {x}")
	require.Contains(t, log.With("share one queue")[0], "redisson_lock_queue:{x}")
	use("z", "{x}", "x", "{z}")
	eventually(t, func() bool { return warnings() == 2 }, "{z} and z")
	use("x", "{x}", "z", "{z}")
	closeClient(t, c) // waits for pending log lines
	require.Equal(t, 2, warnings())
}
