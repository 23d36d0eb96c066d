package owner_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/owner"
)

// A clone of a virtual machine has the same counter.
func TestNumbersOfTwoCopiesOfAProcessDiffer(t *testing.T) {
	t.Parallel()
	drawn := make(map[uint64]bool)
	for copies := range 4 {
		drawn[owner.Number(owner.Plain, 7)] = true
		require.Len(t, drawn, copies+1)
	}
}

func TestNumberIsAPositiveInt64ThatCountsAndSaysTheKind(t *testing.T) {
	t.Parallel()
	for _, k := range []owner.Kind{owner.Plain, owner.Fair, owner.ReadWrite} {
		last := uint64(0)
		for count := range uint64(100) {
			n := owner.Number(k, 1<<28-50+count)
			name := "id:" + strconv.FormatUint(n, 10)
			require.Positive(t, int64(n))
			require.NotEqual(t, last&(1<<28-1), n&(1<<28-1))
			require.Equal(t, k, owner.KindOf(name))
			require.Equal(t, k, owner.KindOf(name+":write"))
			last = n
		}
	}
	for _, name := range []string{"", "id", "id:", "id:7", "id:x", "id:9223372036854775808"} {
		require.Equal(t, owner.Unknown, owner.KindOf(name), name)
	}
}
