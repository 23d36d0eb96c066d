package locktest

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Seed returns the seed of a test's random choices. It is 1, so that no change fails by chance,
// unless the environment variable is set: a number repeats a run, as far as the scheduler allows,
// and "new" draws a new seed.
func Seed(t testing.TB, variable string) uint64 {
	t.Helper()
	text := cmp.Or(os.Getenv(variable), "1")
	if text == "new" {
		text = strconv.FormatUint(uint64(rand.Uint32()), 10)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	t.Logf("%s=%d", variable, seed)
	return seed
}

// Length returns how long a test runs that could run for ever: the time in the environment
// variable, such as 60s, or otherwise.
func Length(t testing.TB, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	length, err := time.ParseDuration(cmp.Or(os.Getenv(variable), otherwise.String()))
	require.NoError(t, err, variable)
	return length
}
