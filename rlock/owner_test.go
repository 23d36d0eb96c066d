package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The mistake: a middleware gives the request an owner, and goroutines below share it.
func TestOverlappingLevelsOfOneOwnerAreLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, debug := range []bool{false, true} {
		var log logtest.Lines
		c := newClient(t, redistest.Start(t), rlock.Options{Logger: log.Logger(), Debug: debug})
		lock := c.NewLock("order")
		request := rlock.WithOwner(t.Context())
		for range 2 {
			first := takeWith(request, t, lock, longLease)
			second := takeWith(request, t, lock, longLease)
			unlock(t, first) // the second goroutine is still inside
			unlock(t, second)
		}
		eventually(t, func() bool { return len(log.With("do not exclude each other")) == 1 }, "no line")
		line := log.With("do not exclude each other")[0]
		if debug {
			require.Regexp(t, `first="acquired at .*locktest.go:\d+`, line)
			require.Regexp(t, `second="acquired at .*locktest.go:\d+`, line)
		} else {
			require.Contains(t, line, "Options.Debug")
		}
		closeClient(t, c)
		require.Len(t, log.With("do not exclude each other"), 1)
	}
}
