package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestBatchReleaseDoesNotWaitForAPartThatAnotherCallUses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "renew.lua"))
	c := newClientOn(t, g, rlock.Options{CommandTimeout: 2 * longWait})
	t.Cleanup(g.open)
	holds := takeThree(t.Context(), t, c, longLease)
	extended := make(chan error, 1)
	go func() { extended <- holds[1].Extend(t.Context(), longLease) }()
	receive(t, g.kept, "nothing was asked")
	released := make(chan []error, 1)
	go func() { released <- hook.ReleaseBatch(holds) }()
	waitUntilFree(t, s, "a")
	waitUntilFree(t, s, "c")
	require.Empty(t, released)
	require.NotEmpty(t, s.DoMap(t, "HGETALL", "b"))

	g.open()
	require.NoError(t, receive(t, extended, "Extend hangs"))
	for _, err := range receive(t, released, "the release hangs") {
		require.NoError(t, err)
	}
	require.Empty(t, s.Keys(t))
	require.Zero(t, rlock.Sessions(c))
}

// A hook around rueidis may end the call that releases the others.
func TestPartThatAnotherCallUsesIsReleasedAfterAHookHasEndedTheBatch(t *testing.T) {
	t.Parallel()
	for how, end := range locktest.Ends {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "renew.lua"))
			redis := &ending{Client: g, before: true}
			c := newClientOn(t, redis, rlock.Options{Anonymous: true})
			t.Cleanup(g.open)
			holds, err := hook.TryBatch(t.Context(), longLease,
				[]*rlock.Lock{c.NewLock("busy"), c.NewLock("order")})
			require.NoError(t, err)
			extended := make(chan error, 1)
			go func() { extended <- holds[0].Extend(t.Context(), longLease) }()
			receive(t, g.kept, "nothing was asked")
			redis.end.Store(&end)
			ended := make(chan string, 1)
			go func() { ended <- locktest.EndOf(t, func() { hook.ReleaseBatch(holds) }) }()
			waitUntilFree(t, s, "order") // by the clean-up
			g.open()
			require.NoError(t, receive(t, extended, "Extend hangs"))
			require.Equal(t, how, receive(t, ended, "the release hangs"))
			waitUntilFree(t, s, "busy")
		})
	}
}
