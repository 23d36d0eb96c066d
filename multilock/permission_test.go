//go:build redis

package multilock_test

import (
	"context"
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

// The lock of the lost reply was released, not lost.
func TestReleaseWhoseReplyIsLostBeforeAKeyIsForbiddenIsNoLoss(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	p.HoldReplies()
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock(context.Background()) }()
	waitUntilFree(t, s)
	s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~a", "~c")
	p.Reset()
	p.Pass()
	err := receive(t, unlocked, "Unlock has not returned")
	s.Do(t, "ACL", "SETUSER", "default", "allkeys")
	require.NotErrorIs(t, err, rlock.ErrLost)
	require.ErrorContains(t, err, "NOPERM")
	require.ErrorContains(t, err, `lock "b"`)
	require.NotContains(t, err.Error(), `lock "a"`)
}
