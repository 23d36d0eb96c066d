package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func requireLevels(t testing.TB, s *redistest.Server, want string) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, []string{want}, levels(t, s, name), name)
	}
}

// Only one part is refused, for good. Unlock reports it, and the others are free.
func TestPartThatCannotBeReleasedDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	s, lock, _ := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	s.Do(t, "DEL", "b")
	s.Do(t, "SET", "b", "a page")
	err := hold.Unlock(t.Context())
	require.ErrorContains(t, err, "WRONGTYPE")
	require.ErrorContains(t, err, `lock "b"`)
	require.NotContains(t, err.Error(), `lock "a"`)
	require.Equal(t, []string{"b"}, left(t, s))
}
