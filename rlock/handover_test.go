package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/lua"
	"holdfast/rlock"
)

// The message grants the lock long after that is over, to a waiter that has asked again since and
// was refused. A publisher on one channel of this client must not make it release locks of others.
func TestGrantToAnotherOrOnTheChannelOfAnotherLockIsIgnored(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	victim := take(t, other.NewLock("precious"), longLease)
	theirs := take(t, other.NewLock("theirs"), longLease)
	ours := take(t, c.NewLock("order"), longLease)
	say := func(lock, text string) {
		s.Do(t, "PUBLISH", wire.PairedChannels(wire.Channel(lock), c.ID())[1], text)
	}
	waiter := registers(t, s, 1, c.NewLock("order"), longLease)
	second := registers(t, s, 1, c.NewLock("theirs"), longLease)
	s.Do(t, "HSET", "elsewhere", c.ID()+":ghost", "1")
	say("theirs", theirs.Owner()+" 1 0 0 0 theirs")
	say("order", victim.Owner()+" 1 0 0 0 precious")
	say("order", c.ID()+":ghost 1 0 0 0 elsewhere")

	// This one is accepted, and handled after the others.
	unlock(t, ours)
	unlock(t, acquired(t, waiter))
	s.Do(t, "HSET", "order", c.ID()+":ghost", "1")
	waiter = registers(t, s, 1, c.NewLock("order"), longLease)
	say("order", c.ID()+":ghost 1 0 0 0 order")
	unlock(t, acquired(t, waiter))
	require.True(t, exists(s, "precious"))
	require.True(t, exists(s, "elsewhere"))
	require.Empty(t, second)
	require.Equal(t, map[string]string{theirs.Owner(): "1"}, s.DoMap(t, "HGETALL", "theirs"))
	unlock(t, theirs)
	unlock(t, acquired(t, second))
	unlock(t, victim)
}

// The release has handed the lock to its successor, and only the reply is late. The successor does
// not wait for it: it asked by itself, and holds the lock when the reply comes, which must not be
// taken for that of a waiter that left.
func TestSuccessorThatAskedByItselfKeepsTheLockWhenTheReplyToTheReleaseComes(t *testing.T) {
	t.Parallel()
	onEach(t, []kind{kindNamed("reentrant"), kindNamed("write")}, func(t *testing.T, k kind) {
		s := redistest.Start(t)
		gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.release))
		c := newClientOn(t, gate, rlock.Options{})
		t.Cleanup(gate.open)
		first := take(t, k.lock(c, k.name), longLease)
		waiter := k.parked(t, s, k.lock(c, k.name))
		released := make(chan error, 1)
		go func() { released <- first.Unlock() }()
		receive(t, gate.kept, "the release was not sent")
		s.Do(t, "PUBLISH", k.channel+":{"+k.name+"}", "1") // wakes all waiters
		successor := acquired(t, waiter)
		gate.pass()
		require.NoError(t, receive(t, released, "the release hangs"))

		gate.open()
		// comes after all that the clean-up has sent
		unlock(t, take(t, c.NewLock("another"), longLease))
		require.Equal(t, k.hash(successor.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, successor)
		requireFree(t, s, k.name)
	})
}

// Redisson waits without registration, and tries when it hears that the lock is free.
func TestWaiterOfRedissonGetsTheLockAmongHandOvers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const owner = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:7"
	var over atomic.Bool
	var work sync.WaitGroup
	for range 2 {
		lock := newClient(t, s, rlock.Options{}).NewLock("order")
		for range 8 {
			work.Go(func() {
				for !over.Load() {
					hold, err := lock.Lock(context.Background(), rlock.Watchdog)
					if !assert.NoError(t, err) || !assert.NoError(t, hold.Unlock()) {
						return
					}
				}
			})
		}
	}
	defer work.Wait()
	defer over.Store(true)
	waitForListeners(t, s, "order", 2) // it comes in the middle of that
	heard, redis := listen(t, s, channelOf("order")), s.Client(t)
	plain := lua.NewExclusive("order", false)
	for turn := range 5 {
		for start := time.Now(); ; heard.next(t) {
			require.Less(t, time.Since(start), longWait/2, "turn %d", turn)
			_, _, holder, err := plain.Acquire(t.Context(), redis, owner, 30*time.Second, "")
			require.NoError(t, err)
			if holder == nil {
				break
			}
		}
		_, err := plain.Release(t.Context(), redis, owner, 0, lua.HandOver{})
		require.NoError(t, err)
	}
}
