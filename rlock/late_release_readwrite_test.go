//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A release of a read lock without reply may be executed at any time, and the writer's next read
// hold has the same name. While the owner writes no one else gets in; afterwards that read hold
// cannot be trusted.
func TestReadHoldThatALateReleaseMayTakeEndsWithTheWriteHold(t *testing.T) {
	t.Parallel()
	const lease = 7 * time.Second
	for name, cease := range map[string]func(*testing.T, *rlock.Hold){
		"that is released": func(t *testing.T, write *rlock.Hold) { unlock(t, write) },
		"that runs out": func(t *testing.T, write *rlock.Hold) {
			receive(t, write.Done(), "the write lease does not end")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			lock, gate := readingStepwise(t, s, rlock.Options{CommandTimeout: 2 * time.Second})
			owner := rlock.WithOwner(t.Context())
			write := takeWith(owner, t, lock.Write(), lease)
			read := takeWith(owner, t, lock.Read(), time.Minute)
			require.ErrorIs(t, read.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
			receive(t, gate.arrived, "not sent")
			again := takeWith(owner, t, lock.Read(), time.Minute)
			require.True(t, again.Valid())

			cease(t, write)
			receive(t, again.Done(), "it is trusted")
			require.ErrorIs(t, again.Err(), rlock.ErrLost)
			require.ErrorContains(t, again.Err(), "earlier release")
			eventually(t, func() bool {
				select {
				case gate.step <- struct{}{}: // the late one, or the cleanup
				default:
				}
				return absent(s, "page")
			}, "the lock is free")
		})
	}
}

// The watchdog may be late to find that the write lease is over, as after a pause of the process. A
// read hold that begins then is not protected by it.
func TestReadHoldThatALateReleaseMayTakeIsNotTrustedAfterTheWriteLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	gate := &stepwise{Client: s.Client(t, redistest.OneConnection),
		argument: loaded(t, s, "read_release.lua"),
		arrived:  make(chan struct{}, 1000), step: make(chan struct{})}
	c := newClientOn(t, gate, rlock.Options{CommandTimeout: time.Second})
	t.Cleanup(func() { close(gate.step) }) // before the client is closed
	lock, owner := c.NewReadWriteLock("page"), rlock.WithOwner(t.Context())
	write := takeWith(owner, t, lock.Write(), 6*time.Second)
	read := takeWith(owner, t, lock.Read(), 4*time.Second) // the lock does not outlast the write lease
	require.ErrorIs(t, read.Unlock(t.Context()), rlock.ErrOutcomeUnknown)

	stuck, freed := make(chan struct{}), make(chan struct{})
	defer close(freed)
	hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(take(t, c.NewLock("other"), time.Second),
		func(error) { close(stuck); <-freed }) // and the watchdog with it
	receive(t, stuck, "the other lease does not end")
	require.True(t, write.Valid())
	eventually(t, func() bool { return absent(s, "page") }, "the write lease does not end")

	require.False(t, takeWith(owner, t, lock.Read(), time.Minute).Valid())
}

// A release that was executed before the next read hold was taken takes nothing from it.
func TestReadHoldTakenAfterALateReleaseOutlastsTheWriteHold(t *testing.T) {
	s := redistest.Start(t)
	lock, gate := readingStepwise(t, s, rlock.Options{CommandTimeout: 2 * time.Second})
	owner := rlock.WithOwner(t.Context())
	write := takeWith(owner, t, lock.Write(), time.Minute)
	read := takeWith(owner, t, lock.Read(), time.Minute)
	require.ErrorIs(t, read.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	receive(t, gate.arrived, "not sent")
	require.Equal(t, 1, rlock.Unconfirmed(lock.Read()))
	gate.step <- struct{}{}
	eventually(t, func() bool { return rlock.Unconfirmed(lock.Read()) == 0 },
		"the reply has not come")

	again := takeWith(owner, t, lock.Read(), time.Minute)
	unlock(t, write)
	require.True(t, again.Valid())
	require.Equal(t, map[string]string{"mode": "read", again.Owner(): "1"},
		s.DoMap(t, "HGETALL", "page"))
}
