//go:build redis

package rlock_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// The counter is read and written by two commands, so only the lock prevents lost increments. Most
// readers only read it, again and again, and must find the same value.
func TestNoTwoHoldersAmong32GoroutinesIn3Processes(t *testing.T) {
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		const (
			clients    = 3
			goroutines = 32
			rounds     = 5
		)
		s.Do(t, "SET", "counter", "0")
		var started []*process
		for range clients {
			started = append(
				started,
				startProcess(t, "count", s.Addr(), k.name, strconv.Itoa(goroutines),
					strconv.Itoa(rounds)),
			)
		}
		for _, p := range started {
			require.Equal(t, "ready", p.Line(t))
		}
		for _, p := range started {
			p.Tell(t, "go")
		}
		for _, p := range started {
			p.Wait(t)
		}
		writers := goroutines
		if k.shared {
			writers = goroutines / readersPerWriter
		}
		require.Equal(t, strconv.Itoa(clients*writers*rounds), s.DoString(t, "GET", "counter"))
		requireFree(t, s, k.name)
	})
}
