package redlock_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// ending is a rueidis client with a hook. It ends the goroutine of a command about the lock once:
// before it is sent or after its reply.
type ending struct {
	rueidis.Client
	before, after atomic.Bool
}

func (h *ending) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	ours := slices.Contains(command.Commands(), name)
	if ours && h.before.Swap(false) {
		runtime.Goexit()
	}
	result := h.Client.Do(ctx, command)
	executed := result.Error() == nil || rueidis.IsRedisNil(result.Error())
	if ours && executed && h.after.Swap(false) {
		runtime.Goexit()
	}
	return result
}

// A hook around rueidis may end the goroutine that asks a node. What the node has granted or not
// released is removed, long before its lease ends.
func TestNothingStaysOnANodeOfWhichAHookHasEndedACall(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"acquire", "release"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 3)
			clients := newClients(t, servers[1:], rlock.Options{})
			hook := &ending{Client: servers[0].Client(t)}
			clients = append(clients, newClientOn(t, hook, rlock.Options{Server: "hooked"}))
			l := redlock.NewOn(name, atOnce, clients...)
			hook.after.Store(call == "acquire")
			hold, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
			require.NoError(t, err)
			eventually(t, func() bool {
				return call == "acquire" && !hook.after.Load() || count(servers) == len(servers)
			}, "the node has not granted the lock")
			hook.before.Store(call == "release")
			require.NoError(t, hold.Unlock(t.Context()))
			eventually(t, func() bool { return count(servers) == 0 }, "a node keeps the lock")
			require.False(t, hook.before.Load() || hook.after.Load(), "no command met the hook")
		})
	}
}
