package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// These tests are about locks that were handed over when the reply or the message is lost, or late.

// The release is executed, and the successor is told to ask.
func TestLostReplyToAReleaseWithASuccessorMakesItTheOnlyHolder(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		for _, lost := range []int{1, 2} {
			s := redistest.Start(t)
			c, p := proxied(t, s, rlock.Options{})
			k.warm(t, c, k.name)
			first := take(t, k.lock(c, k.name), longLease)
			successor := k.parked(t, s, k.lock(c, k.name))
			cut := p.CutReply(script(t, k.release), lost)
			start := time.Now()
			require.NoError(t, first.Unlock(t.Context()))
			hold := acquired(t, successor)
			require.Less(t, time.Since(start), 2*time.Second)
			require.Equal(t, lost, cut.Done())
			require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			require.True(t, hold.Valid())
			require.NoError(t, hold.Unlock(t.Context()))
			waitUntilFree(t, s, k.name)
		}
	})
}

// The release is not executed at all.
func TestReleaseWithASuccessorThatIsRefusedAtFirstFreesTheLockInTheEnd(t *testing.T) {
	t.Parallel()
	onEach(t, passing(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		first := take(t, k.lock(c, k.name), longLease)
		successor := k.parked(t, s, k.lock(c, k.name))
		refused := p.Reply(script(t, k.release), 2,
			"LOADING Redis is loading the dataset in memory")
		start := time.Now()
		unlock(t, first)
		hold := acquired(t, successor)
		require.Less(t, time.Since(start), 2*time.Second)
		require.Equal(t, 2, refused.Done())
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

func TestWaiterWhoseGrantIsLostWithItsConnectionFindsItsLock(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
		p.HoldMessages()
		unlock(t, first)
		require.Equal(t, c.ID(), holderOf(t, s, k.name))
		given := s.DoMap(t, "HGETALL", k.name)
		require.Positive(t, p.Reset(), "what it held back is lost")
		start := time.Now()
		p.Pass()
		hold := acquired(t, waiter)
		require.Less(t, time.Since(start), 2*time.Second,
			"it looked when it would have anyway, instead of after it listened again")
		require.Equal(t, k.hash(hold.Owner(), 1), given, "it is the same acquisition")
		if k.fenced {
			require.Equal(t, lastNumber(t, s, k.name), hold.Token())
		}
		unlock(t, hold)
		waitUntilFree(t, s, k.name)
	})
}

// The message grants the lock long after that is over, to a waiter that has asked again since and
// was refused. A publisher on one channel of this client must not make it release locks of others.
func TestGrantToAnotherOrOnTheChannelOfAnotherLockIsIgnored(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	victim := take(t, newClient(t, s, rlock.Options{}).NewLock("precious"), longLease)
	ours := take(t, c.NewLock("order"), longLease)
	client, _, _ := strings.Cut(ours.Owner(), ":")
	waiter := registersBy(t, s, 1, "order", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("order"), longLease)
	})
	s.Do(t, "HSET", "elsewhere", client+":ghost", "1")
	say := func(lock, text string) {
		s.Do(t, "PUBLISH", lua.PairedChannels(lua.Channel(lock), client)[1], text)
	}
	theirs := take(t, newClient(t, s, rlock.Options{}).NewLock("theirs"), longLease)
	second := registersBy(t, s, 1, "theirs", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("theirs"), longLease)
	})
	say("theirs", theirs.Owner()+" 1 0 0 0 theirs")
	say("order", victim.Owner()+" 1 0 0 0 precious")
	say("order", client+":ghost 1 0 0 0 elsewhere")

	// This one is accepted, and handled after the others.
	unlock(t, ours)
	unlock(t, acquired(t, waiter))
	s.Do(t, "HSET", "order", client+":ghost", "1")
	waiter = registersBy(t, s, 1, "order", func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewLock("order"), longLease)
	})
	say("order", client+":ghost 1 0 0 0 order")
	unlock(t, acquired(t, waiter))
	require.True(t, exists(s, "precious"))
	require.True(t, exists(s, "elsewhere"))
	require.Empty(t, second)
	require.Equal(t, map[string]string{theirs.Owner(): "1"}, s.DoMap(t, "HGETALL", "theirs"))
	unlock(t, theirs)
	unlock(t, acquired(t, second))
	unlock(t, victim)
}
