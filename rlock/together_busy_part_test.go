package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
