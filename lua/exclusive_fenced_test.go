package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// The number may be larger than any that Lua tells apart.
const largeToken = int64(1_790_000_000_000_000_001)

func TestGiftOfAFencedLockHasTheNextNumber(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, decimal(largeToken))
	sub := attend(t, s, far)
	ticket := enlist(t, c, fenced, older)
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, fenced, toAll))
	requireHeir(t, s, older)
	sub.requireGift(t, far, older, ticket, largeToken+1)
	require.Equal(t, decimal(largeToken+1), s.DoString(t, "GET", counter))
	requireTTL(t, s, counter, lua.NoExpiry)

	// An heir that asks, because it does not trust its message, gets the same.
	fence, _, holder, err := fenced.Acquire(t.Context(), c, older, patience, fenced.Place(older, patience))
	require.NoError(t, err)
	require.Nil(t, holder)
	require.Equal(t, largeToken+1, fence)
}

func TestNextOneGetsTheNextNumberOfAFencedLock(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, decimal(largeToken))
	p := lua.Passing{Next: fenced.Place(next, patience), NextFirst: true}
	for _, want := range []lua.Released{{Held: true, To: lua.Next, Fence: largeToken + 1}, {}} { // the answer may not come
		out, err := fenced.Release(t.Context(), c, me, 0, p)
		require.NoError(t, err)
		require.Equal(t, want, out)
		requireHeir(t, s, next)
		require.Equal(t, decimal(largeToken+1), s.DoString(t, "GET", counter))
	}
}

func TestFencedLockThatWasNeverNumberedIsFromOneOn(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	ticket := enlist(t, c, fenced, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	sub.requireGift(t, far, older, ticket, 1)
}

// One who is passed over costs no number.
func TestFencedWaiterThatNobodyListensForIsPassedOver(t *testing.T) {
	s, c := startHeld(t)
	enlist(t, c, fenced, newer)
	ticket := enlist(t, c, fenced, older)
	sub := attend(t, s, far)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireHeir(t, s, older)
	sub.requireGift(t, far, older, ticket, 1)
	require.Equal(t, "1", s.DoString(t, "GET", counter))
}

// It does not know the counter. The fenced waiter hears the announcement, and asks.
func TestPlainReleaseThatMeetsAFencedPlaceIsAnnounced(t *testing.T) {
	for name, p := range map[string]lua.Passing{"to others": toAll, "to others first": toNext(false)} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			s.Do(t, "SET", counter, "7")
			sub := attend(t, s, far)
			enlist(t, c, fenced, older)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireFree(t, s, lock)
			sub.requireAnnounced(t)
			sub.requireNothing(t)
			require.Equal(t, "7", s.DoString(t, "GET", counter))

			fence, _, holder, err := fenced.Acquire(t.Context(), c, older, lease, fenced.Place(older, patience))
			require.NoError(t, err)
			require.Nil(t, holder)
			require.EqualValues(t, 8, fence)
		})
	}
}

func TestFencedReleaseThatMeetsAPlainPlaceDoesNotCount(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, "7")
	sub := attend(t, s, far)
	ticket := enlist(t, c, plain, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireHeir(t, s, older)
	sub.requireGift(t, far, older, ticket, 0)
	require.Equal(t, "7", s.DoString(t, "GET", counter))
}

func TestFencedLockWhoseCounterIsBrokenIsReleasedAndAnnounced(t *testing.T) {
	for name, write := range map[string][]string{
		"a text": {"SET", counter, "a page"}, "at its end": {"SET", counter, "9223372036854775807"}, "a list": {"RPUSH", counter, "a"},
	} {
		for to, p := range map[string]lua.Passing{
			"others": toAll,
			"next":   {Next: fenced.Place(next, patience), NextFirst: true},
		} {
			t.Run(name+" to "+to, func(t *testing.T) {
				s, c := startHeld(t)
				s.Do(t, write...)
				sub := attend(t, s, far)
				enlist(t, c, fenced, older)
				require.Equal(t, lua.Released{Held: true}, release(t, c, fenced, p))
				requireFree(t, s, lock)
				sub.requireAnnounced(t)
				_, _, _, err := fenced.Acquire(t.Context(), c, older, patience, fenced.Place(older, patience))
				var refusal *lua.Error
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, lua.Permanent, refusal.Class)
				require.Contains(t, refusal.Advice, counter)
				requireFree(t, s, lock)
			})
		}
	}
}
