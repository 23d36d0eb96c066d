package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// names are lock names with the channel that Redisson derives from each, and whether key and
// channel share a slot.
var names = []struct {
	name, channel string
	oneSlot       bool
}{
	{"plain", "redisson_lock__channel:{plain}", true},
	{"order:42 ü", "redisson_lock__channel:{order:42 ü}", true},
	{"{tag}rest", "redisson_lock__channel:{tag}rest", true},
	{"before{tag}after", "redisson_lock__channel:before{tag}after", true},
	{"foo}bar", "redisson_lock__channel:{foo}bar}", false},
	{"a{b", "redisson_lock__channel:a{b", false},
	{"x{}y", "redisson_lock__channel:x{}y", false},
}

// requireName requires that a lock is kept on s under its very name, and its release announced on
// the given channel, which has a listener on one of the nodes.
func requireName(
	t *testing.T, s *redistest.Server, c *rlock.Client, name, channel string,
	nodes []*redistest.Server, numsub string,
) {
	t.Helper()
	lock := c.NewLock(name)
	hold := take(t, lock, time.Minute)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
	waiter := lockInBackground(t.Context(), lock, time.Minute)
	eventually(t, func() bool {
		return slices.ContainsFunc(nodes, func(node *redistest.Server) bool {
			reply, err := node.Call("PUBSUB", numsub, channel)
			return err == nil && reply.([]any)[1] == int64(1)
		})
	}, "nobody listens on "+channel)
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
	require.Zero(t, s.DoInt(t, "EXISTS", name))
}
