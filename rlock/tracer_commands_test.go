package rlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// hooked is a rueidis client that notes what commands' contexts have from a tracer, as rueidisotel
// looks for the caller's span there.
type hooked struct {
	rueidis.Client
	mu   sync.Mutex
	seen []any // guarded by mu
}

func (h *hooked) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains([]string{"EVALSHA", "EVAL"}, command.Commands()[0]) {
		h.mu.Lock()
		h.seen = append(h.seen, ctx.Value(locktest.TraceKey{}))
		h.mu.Unlock()
	}
	return h.Client.Do(ctx, command)
}

func TestCommandsHaveTheContextOfTheTracer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, byWorkers := range []bool{false, true} {
		// With two connections, a caller that would have to dial leaves its command to a worker, and
		// the command is noted twice.
		h := &hooked{Client: s.Client(t, redistest.OneConnection)}
		c := newClientOn(t, h, rlock.Options{Anonymous: true, Tracer: new(locktest.Tracer)})
		if byWorkers {
			rlock.Detach(c)
		}
		warm(t, c, "warm")
		h.seen = nil
		hold := take(t, c.NewLock("order"), longLease)
		unlock(t, hold)
		h.mu.Lock()
		require.Len(t, h.seen, 2)
		require.IsType(t, rlock.AcquireStart{}, h.seen[0])
		require.IsType(t, rlock.HoldStart{}, h.seen[1])
		h.mu.Unlock()
	}
}
