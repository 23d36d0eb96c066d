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

// A command that its caller sends itself may be left by all, and be executed after what undoes it:
// rueidis has several connections.

// givenUp is a rueidis client that, once, keeps a command with a given argument, and reports that
// rueidis gave up waiting for its reply.
type givenUp struct {
	rueidis.Client
	argument string
	kept     chan []string // receives the command
	giveUp   chan struct{} // closed when rueidis gives up
	done     atomic.Bool
}

func (g *givenUp) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(command.Commands())
	if !slices.Contains(words, g.argument) || g.done.Swap(true) {
		return g.Client.Do(ctx, command)
	}
	g.kept <- words
	<-g.giveUp
	over, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	return g.Client.Do(over, command)
}

// A worker's command is executed after rueidis has given it up, and after what undoes it.
func TestLockTakenLateByAWorkersCommandIsReleased(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{
		"by a caller that acquires it again": false, "by a caller that has left": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, givenAway(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				redis := &givenUp{Client: s.Client(t), argument: k.name,
					kept: make(chan []string, 1), giveUp: make(chan struct{})}
				c := newClientOn(t, redis, anonymous)
				rlock.Detach(c)
				unlock(t, take(t, k.lock(c, "warm"), longLease)) // loads the scripts
				sent := s.CommandStats(t)["evalsha"]
				ctx, cancel := context.WithCancel(t.Context())
				locking := lockInBackground(ctx, k.lock(c, k.name), longLease)
				command := receive(t, redis.kept, "nothing is sent")
				if leaves {
					cancel()
					require.ErrorIs(t, result(t, locking).Err, context.Canceled)
				}
				close(redis.giveUp)
				if !leaves {
					unlock(t, acquired(t, locking))
				}
				eventually(t, func() bool { return s.CommandStats(t)["evalsha"] > sent },
					"nothing is cleaned up")
				waitUntilFree(t, s, k.name)
				_, refused := s.Do(t, command...).([]any)
				require.False(t, refused, "it takes the lock")
				eventually(t, func() bool { return !exists(s, k.name) }, "nobody releases it")
				cancel()
			})
		})
	}
}

// heldBack is a rueidis client that, once, holds back a command with a given argument.
type heldBack struct {
	rueidis.Client
	argument atomic.Pointer[string]
	kept     chan []string // receives the command
	opened   chan struct{} // closed when it is sent
}

func (h *heldBack) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words, argument := command.Commands(), h.argument.Load()
	if argument != nil && slices.Contains(words, *argument) &&
		h.argument.CompareAndSwap(argument, nil) {
		h.kept <- words
		<-h.opened
	}
	return h.Client.Do(ctx, command)
}

// A holder's lease ends while its release is under way. The next waiter gets the lock by asking,
// and gives it back. Then an earlier request of the holder takes the lock, and the release gives it
// away. Its successor would have been a waiter whose hold is over.
func TestReleaseAfterALateRequestGivesTheLockToNobodyWhoIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		gate := &heldBack{Client: s.Client(t), kept: make(chan []string, 1),
			opened: make(chan struct{})}
		redis := &givenUp{Client: gate, argument: k.name, kept: make(chan []string, 1),
			giveUp: make(chan struct{})}
		c := newClientOn(t, redis, anonymous)
		rlock.Detach(c)
		unlock(t, take(t, k.lock(c, "warm"), longLease)) // loads the scripts
		locking := lockInBackground(t.Context(), k.lock(c, k.name), longLease)
		command := receive(t, redis.kept, "nothing is sent")
		close(redis.giveUp)
		first := acquired(t, locking)

		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		owner := first.Owner()
		gate.argument.Store(&owner)
		released := make(chan error, 1)
		go func() { released <- first.Unlock(t.Context()) }()
		receive(t, gate.kept, "the release was not sent")
		s.Do(t, "DEL", k.name)
		s.Do(t, "PUBLISH", k.channel+":{"+k.name+"}", "1") // wakes all waiters
		unlock(t, acquired(t, waiter))
		waitUntilFree(t, s, k.name)

		_, refused := s.Do(t, command...).([]any)
		require.False(t, refused, "it takes the lock")
		close(gate.opened)
		require.NoError(t, receive(t, released, "the release hangs"))
		eventually(t, func() bool { return !exists(s, k.name) }, "nobody releases it")
	})
}
