package multilock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The server refuses the script for all keys because of one.
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

// What the lost reply was about is not lost: it was released.
func TestReleaseWhoseReplyIsLostBeforeAKeyIsForbiddenIsNoLoss(t *testing.T) {
	t.Parallel()
	s, lock, p := proxied(t, rlock.Options{})
	hold := take(t, lock, longLease)
	p.HoldReplies()
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock(context.Background()) }()
	awaitFree(t, s)
	s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~a", "~c")
	p.Reset()
	p.Pass()
	err := receive(t, unlocked, "Unlock has not ended")
	s.Do(t, "ACL", "SETUSER", "default", "allkeys")
	require.NotErrorIs(t, err, rlock.ErrLost)
	require.ErrorContains(t, err, "NOPERM")
	require.ErrorContains(t, err, `lock "b"`)
	require.NotContains(t, err.Error(), `lock "a"`)
}
