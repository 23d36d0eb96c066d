package rlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// These tests are about locks that were handed over when the reply or the message is lost, or late.

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
