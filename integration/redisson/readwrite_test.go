//go:build interop

package redisson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readWrite returns both locks of a new read-write lock.
func readWrite() (reading, writing target) {
	name := newName()
	return target{read, []string{name}}, target{write, []string{name}}
}

func readersOfBothSidesShareAndKeepWritersOut(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, first, second side) {
		reading, writing := readWrite()
		a, b, writer := first.newActor(t, s), second.newActor(t, s), second.newActor(t, s)
		acquire(t, a, reading, longLease)
		acquire(t, b, reading, longLease)
		acquire(t, b, reading, longLease)
		require.Equal(t, "read", s.hgetall(t, reading.name())["mode"])
		require.Len(t, s.hgetall(t, reading.name()), 3)
		require.Equal(t, 1, count(t, a, reading))
		require.Equal(t, 2, count(t, b, reading))
		refused(t, writer, writing)
		refused(t, first.newActor(t, s), writing)

		waiting := waitInBackground(writer, writing)
		s.waitForWaiters(t, writing, 1)
		unlock(t, b, reading)
		unlock(t, b, reading)
		refused(t, goSide.newActor(t, s), writing)
		s.letSleep(t, writing)
		stillWaits(t, waiting)
		start := time.Now()
		unlock(t, a, reading)
		require.Less(t, acquired(t, waiting).Sub(start), told)
		refused(t, a, reading)
		refused(t, b, reading)
		unlock(t, writer, writing)
		s.requireFree(t, reading)
	})
}

// A writer that reads stops writing, and readers of the other side are let in. This library wakes
// them. Redisson does not, so they find out themselves: those of this library after 5 s, its own at
// the end of the writer's lease when they began to wait.
func downgradeLetsReadersOfTheOtherSideIn(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, writes, reads side) {
		reading, writing := readWrite()
		owner, reader := writes.newActor(t, s), reads.newActor(t, s)
		acquire(t, owner, writing, longLease)
		acquire(t, owner, reading, longLease)
		require.Equal(t, "write", s.hgetall(t, reading.name())["mode"])
		require.Len(t, s.hgetall(t, reading.name()), 3)
		refused(t, reader, reading)
		waiting := inBackground(
			func() error { return reader.tryLock(reading, asksAgain, longLease) })
		s.waitForWaiters(t, reading, 1)
		s.letSleep(t, reading)
		start := time.Now()
		unlock(t, owner, writing)
		limit := told
		if writes.name == javaSide.name {
			limit = asksAgain
		}
		require.Less(t, acquired(t, waiting).Sub(start), limit)
		require.Equal(t, "read", s.hgetall(t, reading.name())["mode"])
		refused(t, reads.newActor(t, s), writing)
		unlock(t, owner, reading)
		refused(t, writes.newActor(t, s), writing)
		unlock(t, reader, reading)
		s.requireFree(t, reading)
	})
}
