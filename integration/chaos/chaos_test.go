package chaos_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/chaos"
)

// TestLocksKeepTheirPromisesWhateverFails plays all scenarios. HOLDFAST_CHAOS_TIME is how long each of them is played,
// HOLDFAST_CHAOS_SEED what they draw from.
func TestLocksKeepTheirPromisesWhateverFails(t *testing.T) {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("HOLDFAST_CHAOS_SEED"), decimal(rand.Uint64())), 10, 64)
	require.NoError(t, err)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("HOLDFAST_CHAOS_TIME"), "5s"))
	require.NoError(t, err)
	for _, scenario := range chaos.Scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			history, verdict := chaos.Run(t, &scenario, seed, length)
			chaos.Report(t, &scenario, seed, length, history, verdict)
		})
	}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
