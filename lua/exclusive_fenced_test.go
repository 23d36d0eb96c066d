package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// The number may be larger than those that Lua's numbers tell apart.
const largeToken = int64(1_790_000_000_000_000_001)

func TestGrantOfAFencedLockHasTheNextNumber(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, decimal(largeToken))
	sub := attend(t, s, far)
	ticket := register(t, c, fenced, older)
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, fenced, toAll))
	requireSuccessor(t, s, older)
	sub.requireGrant(t, far, older, ticket, largeToken+1)
	require.Equal(t, decimal(largeToken+1), s.DoString(t, "GET", counter))
	requireTTL(t, s, counter, lua.NoExpiry)

	// A successor that asks, because it does not trust its message, gets the same number.
	fence, _, holder, err := fenced.Acquire(t.Context(), c, older, waiterLease,
		fenced.Registration(older, waiterLease))
	require.NoError(t, err)
	require.Nil(t, holder)
	require.Equal(t, largeToken+1, fence)
}

func TestSuccessorGetsTheNextNumberOfAFencedLock(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, decimal(largeToken))
	p := lua.HandOver{Successor: fenced.Registration(next, waiterLease), SuccessorFirst: true}
	for _, want := range []lua.Released{ // the first reply may be lost
		{Held: true, To: lua.Successor, Fence: largeToken + 1}, {},
	} {
		out, err := fenced.Release(t.Context(), c, me, 0, p)
		require.NoError(t, err)
		require.Equal(t, want, out)
		requireSuccessor(t, s, next)
		require.Equal(t, decimal(largeToken+1), s.DoString(t, "GET", counter))
	}
}

func TestNumbersOfAFencedLockBeginWithOne(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	ticket := register(t, c, fenced, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	sub.requireGrant(t, far, older, ticket, 1)
}

// A waiter that is skipped costs no number.
func TestFencedWaiterWithoutListenerIsSkipped(t *testing.T) {
	s, c := startHeld(t)
	register(t, c, fenced, newer)
	ticket := register(t, c, fenced, older)
	sub := attend(t, s, far)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireSuccessor(t, s, older)
	sub.requireGrant(t, far, older, ticket, 1)
	require.Equal(t, "1", s.DoString(t, "GET", counter))
}

// A plain release does not know the counter. The fenced waiter hears the announcement and asks.
func TestPlainReleaseThatMeetsAFencedRegistrationIsAnnounced(t *testing.T) {
	for name, p := range map[string]lua.HandOver{
		"to others": toAll, "to others first": toNext(false),
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			s.Do(t, "SET", counter, "7")
			sub := attend(t, s, far)
			register(t, c, fenced, older)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireFree(t, s, lock)
			sub.requireAnnounced(t)
			sub.requireNothing(t)
			require.Equal(t, "7", s.DoString(t, "GET", counter))

			fence, _, holder, err := fenced.Acquire(t.Context(), c, older, lease,
				fenced.Registration(older, waiterLease))
			require.NoError(t, err)
			require.Nil(t, holder)
			require.EqualValues(t, 8, fence)
		})
	}
}

func TestFencedReleaseThatMeetsAPlainRegistrationDoesNotCount(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, "7")
	sub := attend(t, s, far)
	ticket := register(t, c, plain, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireSuccessor(t, s, older)
	sub.requireGrant(t, far, older, ticket, 0)
	require.Equal(t, "7", s.DoString(t, "GET", counter))
}
