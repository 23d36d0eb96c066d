//go:build redis

package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, anonymous), k.name)
		hold := take(t, lock, 30*time.Second)
		before := changes(t, s)
		_, err := lock.Info(hold.Context())
		require.NoError(t, err)
		_, err = lock.HoldCount(hold.Context())
		require.NoError(t, err)
		require.Equal(t, before, changes(t, s))
	})
}

// changes returns how often the server has changed its data: values, leases or keys.
func changes(t *testing.T, s *redistest.Server) string {
	t.Helper()
	_, after, found := strings.Cut(s.DoString(t, "INFO", "persistence"),
		"rdb_changes_since_last_save:")
	require.True(t, found)
	count, _, _ := strings.Cut(after, "\r\n")
	return count
}
