package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seedVariable repeats what a test does at random.
const seedVariable = "HOLDFAST_TEST_SEED"

// Seed returns the seed of a test that does something at random: HOLDFAST_TEST_SEED, or another one each time. If the test
// fails, it shows the seed and the command that repeats it, as far as the scheduler lets it. tb fails if the variable is
// no number.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	require.NoError(tb, err, seedVariable)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(repeat(tb.Name(), seed))
		}
	})
	return seed
}

// repeat is what is to be typed to see a failure again.
func repeat(test string, seed uint64) string {
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	return fmt.Sprintf("integration: repeat it in this directory with\n%s=%d go test -race -count=1 -run '%s' .", seedVariable, seed, pattern)
}
