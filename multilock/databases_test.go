//go:build redis

package multilock_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// A rueidis client does not tell which database it has selected, so its user has to.
func TestOneNameInTwoDatabasesOfAServerNeedsTheirNames(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lockIn := func(database int, server string) *rlock.Lock {
		redis := s.Client(t, func(o *rueidis.ClientOption) { o.SelectDB = database })
		c, err := rlock.New(redis, rlock.Options{Server: server})
		require.NoError(t, err)
		t.Cleanup(func() { locktest.CloseClient(t, c) })
		return c.NewLock("a")
	}
	requireInvalid(t, multilock.New(lockIn(0, ""), lockIn(1, "")),
		"two clients", "different databases", "rlock.Options.Server")

	both := multilock.New(lockIn(1, "main/1"), lockIn(0, "main/0"))
	hold := locktest.Acquire(t, both, locktest.Timeout)
	require.Equal(t, "a+a", hold.Name())
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "a"), "in database 0")
	require.Contains(t, s.DoString(t, "INFO", "keyspace"), "db1:keys=")
	locktest.Unlock(t, hold)
}
