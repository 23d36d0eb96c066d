//go:build redis

package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestSeveralServersNeedNamesThatAllProcessesKnow(t *testing.T) {
	t.Parallel()
	s, group := redistest.Start(t), redistest.StartSentinel(t)
	plain := newClient(t, s, rlock.Options{})
	unnamed := newClientOn(t, group.Client(t), rlock.Options{})
	another := newClientOn(t, group.Client(t), rlock.Options{})
	named := newClientOn(t, group.Client(t), rlock.Options{Server: "group"})
	requireInvalid(
		t,
		multilock.New(unnamed.NewLock("b"), plain.NewLock("a")),
		`"b"`,
		"rlock.Options.Server",
		"in all processes",
	)
	requireInvalid(
		t,
		multilock.New(plain.NewLock("a"), unnamed.NewLock("b")),
		`"b"`,
		"rlock.Options.Server",
		"in all processes",
	)
	requireInvalid(t, multilock.New(unnamed.NewLock("b"), another.NewLock("b")),
		"rlock.Options.Server")

	// A single Redis needs no name, and an address is one.
	unlock(t, take(t, multilock.New(unnamed.NewLock("b"), unnamed.NewFairLock("a")), longLease))
	unlock(t, take(t, multilock.New(named.NewLock("b"), plain.NewLock("a")), longLease))
	require.Empty(t, unnamed.NewLock("b").Server())
	require.Equal(t, "group", named.NewLock("b").Server())
	require.Equal(t, s.Addr(), plain.NewLock("a").Server())
}
