package rlock_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// undialed is a rueidis client whose commands with a given argument fail, for a number of times, as
// if another caller had ended the dial that they wait for.
type undialed struct {
	rueidis.Client
	argument string
	times    atomic.Int32
}

func (u *undialed) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains(command.Commands(), u.argument) && u.times.Add(-1) >= 0 {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		ctx = ended
	}
	return u.Client.Do(ctx, command)
}

// The worker sends the release again with the same successor, which hears of the last try only.
func TestSuccessorHearsOfAReleaseOnceAlthoughItsDialWasEnded(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		redis := &undialed{Client: s.Client(t), argument: loaded(t, s, k.release)}
		c := newClientOn(t, redis, rlock.Options{})
		first := take(t, k.lock(c, k.name), longLease)
		waiter := k.parked(t, s, k.lock(c, k.name))
		redis.times.Store(3) // by its caller, and twice by the worker
		unlock(t, first)
		successor := acquired(t, waiter)
		require.Negative(t, redis.times.Load())
		require.Equal(t, k.hash(successor.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, successor)
		requireFree(t, s, k.name)
	})
}
