//go:build redis

package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Because of one key the server refuses the script for all of them.
func TestPartWhoseKeyIsForbiddenMeanwhileDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	s, lock, _ := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~a", "~c")
	err := hold.Unlock(t.Context())
	s.Do(t, "ACL", "SETUSER", "default", "allkeys")
	require.ErrorContains(t, err, "NOPERM")
	require.ErrorContains(t, err, `lock "b"`)
	require.NotContains(t, err.Error(), `lock "a"`)
	require.NotContains(t, err.Error(), `lock "c"`)
	require.Equal(t, []string{"b"}, left(t, s))
}
