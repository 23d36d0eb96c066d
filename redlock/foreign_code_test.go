//go:build !race

package redlock_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/suite"
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
		inWorld(t, 2, rlock.Options{}, func(t *testing.T, w *world) {
			third := suite.Virtual.Start(t, 1)[0]
			w.Servers = append(w.Servers, third)
			hook := &ending{Client: third.Client(t)}
			hooked := newClientOn(t, hook, rlock.Options{Server: "hooked"})
			l := redlock.NewOn(name, atOnce, append(w.clients, hooked)...)
			hook.after.Store(call == "acquire")
			hold := take(t, l, longLease)
			synctest.Wait()
			hook.before.Store(call == "release")
			unlock(t, hold)
			w.RequireNothingLeft(t)
			require.False(t, hook.before.Load() || hook.after.Load(), "no command met the hook")
		})
	}
}
