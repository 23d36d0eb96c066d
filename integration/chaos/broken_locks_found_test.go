//go:build redis

package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
)

// TestBrokenLockIsFoundOnServers builds client processes from sources that were broken on purpose.
// What is played on servers must find one mistake; TestBrokenLocksAreFoundInVirtualTime has all.
func TestBrokenLockIsFoundOnServers(t *testing.T) {
	const (
		// The first round mostly is enough. Later ones found it in two of three, with others running.
		first, later = 4 * time.Second, 12 * time.Second
		rounds       = 9
	)
	b := broken[0]
	scenario := b.scenario()
	scenario.Program = buildBroken(t, edited(t, b.edits))
	for seed := range uint64(rounds) {
		length := later
		if seed == 0 {
			length = first
		}
		_, verdict := chaos.Run(t, &scenario, seed, length)
		if b.isFound(t, verdict) {
			return
		}
	}
	require.Fail(t, "not found", "one of %v must be breached", b.found)
}
