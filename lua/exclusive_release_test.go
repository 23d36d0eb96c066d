package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestReleaseThatNobodyWaitsForIsAnnounced(t *testing.T) {
	for name, p := range map[string]lua.Passing{"to nobody": {}, "to all": toAll, "gives up": {GivenUp: plain.Place(me, lease)}} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			sub := subscribe(t, s, "SUBSCRIBE", announcement.Channel)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireEmpty(t, s)
			sub.requireAnnounced(t)
			sub.requireNothing(t)
		})
	}
}

func TestReleaseGivesTheLockToTheOldestPlace(t *testing.T) {
	s, c := startHeld(t)
	sub, behind := attend(t, s, far), attend(t, s, farther)
	first := enlist(t, c, plain, older)
	second := enlist(t, c, plain, newer)

	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toAll))
	requireHeir(t, s, older)
	require.Equal(t, []string{plain.Place(newer, patience)}, places(t, s))
	sub.requireGift(t, far, older, first, 0)
	sub.requireNothing(t)
	behind.requireNothing(t)

	out, err := plain.Release(t.Context(), c, older, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, out.To)
	requireHeir(t, s, newer)
	require.False(t, has(s, waiters))
	behind.requireGift(t, farther, newer, second, 0)

	out, err = plain.Release(t.Context(), c, newer, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireEmpty(t, s)
	sub.requireAnnounced(t)
	behind.requireAnnounced(t)
}

func TestEachPlaceIsGivenTheLockOnceAndInTurn(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	const n = 50
	var tickets []lua.Ticket
	for i := range n {
		tickets = append(tickets, enlist(t, c, plain, far+":"+strconv.Itoa(i)))
	}
	owner := me
	for i := range n {
		out, err := plain.Release(t.Context(), c, owner, 0, toAll)
		require.NoError(t, err)
		require.Equal(t, lua.Other, out.To)
		owner = far + ":" + strconv.Itoa(i)
		requireHeir(t, s, owner)
		sub.requireGift(t, far, owner, tickets[i], 0)
	}
	require.False(t, has(s, waiters))
}

func TestReleaseOfALevelGivesTheLockToNobody(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older)
	for range 2 {
		out, err := plain.Release(t.Context(), c, me, 1, toNext(true))
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true}, out)
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	}
	require.Len(t, places(t, s), 1)
	sub.requireNothing(t)
}

func TestReleaseBySomebodyElseGivesTheLockToNobody(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older)
	for _, count := range []int{0, 1} {
		out, err := plain.Release(t.Context(), c, other, count, toNext(true))
		require.NoError(t, err)
		require.Equal(t, lua.Released{}, out)
	}
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.Len(t, places(t, s), 1)
	sub.requireNothing(t)
}

func TestWaiterThatNobodyListensForIsPassedOver(t *testing.T) {
	s, c := startHeld(t)
	enlist(t, c, plain, older)
	ticket := enlist(t, c, plain, newer)
	gone, sub := attend(t, s, far), attend(t, s, farther)
	gone.leave(t, s, present+":"+far, 0)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	requireHeir(t, s, newer)
	sub.requireGift(t, farther, newer, ticket, 0)
	require.False(t, has(s, waiters), "the one who is gone has lost its place")
}

func TestReleaseIsAnnouncedWhenEverybodyIsGone(t *testing.T) {
	s, c := startHeld(t)
	enlist(t, c, plain, older, newer)
	sub := listen(t, s, "SUBSCRIBE", announcement.Channel, present) // and is not the one that they wait with
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireEmpty(t, s)
	sub.requireAnnounced(t)
}

// One script does not try for ever: those behind hear the announcement.
func TestReleasePassesOverAHundredAtATime(t *testing.T) {
	s, c := startHeld(t)
	for i := range 100 {
		s.Do(t, "ZADD", waiters, strconv.Itoa(i), farther+":"+strconv.Itoa(i)+" 7000 p")
	}
	sub := attend(t, s, far)
	ticket := enlist(t, c, plain, older)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	require.Equal(t, []string{plain.Place(older, patience)}, places(t, s))

	hold(t, s, lock, me, "1", lease)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	sub.requireGift(t, far, older, ticket, 0)
}

func TestReleaseIsAnnouncedWhenAForeignerListens(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older)
	foreign := subscribe(t, s, "SUBSCRIBE", announcement.Channel) // one of Redisson
	for _, p := range []lua.Passing{toAll, toNext(false)} {
		require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
		requireFree(t, s, lock)
		foreign.requireAnnounced(t)
		sub.requireAnnounced(t)
		require.Equal(t, []string{plain.Place(older, patience)}, places(t, s), "who heard it asks, and keeps its place if it is late")
		hold(t, s, lock, me, "1", lease)
	}
	foreign.leave(t, s, announcement.Channel, 1)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
}

func TestReleaseIsAnnouncedWhenOneWaitsWithoutAPlace(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older)
	require.Equal(t, present+":announce", lua.AnnouncementChannel(lock))
	without := listen(t, s, "SUBSCRIBE", announcement.Channel, present, present+":"+farther, lua.AnnouncementChannel(lock))
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireFree(t, s, lock)
	without.requireAnnounced(t)
	sub.requireAnnounced(t)
}

// There may be somebody who waits and cannot be seen.
func TestLockThatWasPassedOnOftenAndForLongIsAnnounced(t *testing.T) {
	for name, of := range map[string]struct {
		turns int
		since time.Duration
		p     lua.Passing
	}{
		"to others":              {15, 101 * time.Millisecond, toAll},
		"to others first":        {15, 101 * time.Millisecond, toNext(false)},
		"seldom, and longer":     {3, 1001 * time.Millisecond, toAll},
		"seldom, to next first":  {11, time.Hour, toNext(false)},
		"the clock was set back": {3, -time.Hour, toAll},
	} {
		t.Run(name, func(t *testing.T) {
			p := of.p
			p.Turns = lua.Turns{Count: of.turns, Began: ago(of.since)}
			s, c := startHeld(t)
			sub := attend(t, s, far)
			ticket := enlist(t, c, plain, older)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireFree(t, s, lock)
			sub.requireAnnounced(t)
			require.Equal(t, []string{plain.Place(older, patience)}, places(t, s))

			hold(t, s, lock, me, "1", lease)
			p.Turns = lua.Turns{}
			require.Equal(t, lua.Other, release(t, c, plain, p).To)
			sub.requireGift(t, far, older, ticket, 0)
		})
	}
}

func TestLockThatWasPassedOnOftenOrForLongIsPassedOn(t *testing.T) {
	for name, of := range map[string]struct {
		turns int
		since time.Duration
	}{"often": {19, 200 * time.Millisecond}, "for long": {14, time.Minute}, "seldom": {3, 200 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			sub := attend(t, s, far)
			ticket := enlist(t, c, plain, older)
			p := toAll
			p.Turns = lua.Turns{Count: of.turns, Began: ago(of.since)}
			require.Equal(t, lua.Other, release(t, c, plain, p).To)
			sub.requireGiftAfter(t, far, older, ticket, 0, lua.Turns{Count: of.turns + 1, Began: p.Turns.Began})
		})
	}
}

func TestTimeOfALockThatIsPassedOnIsNotedWhereItWasNot(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	ticket := enlist(t, c, plain, older)
	p := toAll
	p.Turns = lua.Turns{Count: 15} // in its process, so that no message told
	require.Equal(t, lua.Other, release(t, c, plain, p).To)
	sub.requireGiftAfter(t, far, older, ticket, 0, lua.Turns{Count: 16})
}

func TestNextOneThatComesFirstHasTheLockHoweverOftenItWasPassedOn(t *testing.T) {
	_, c := startHeld(t)
	p := toNext(true)
	p.Turns = lua.Turns{Count: 15, Began: 1}
	require.Equal(t, lua.Next, release(t, c, plain, p).To)
}

func TestNextOneThatComesFirstHasTheLock(t *testing.T) {
	for name, others := range map[string]bool{"before others": true, "whether others wait or not": false} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			there, here := attend(t, s, far), attend(t, s, near)
			enlist(t, c, plain, older, next)
			p := toNext(true)
			p.Others = others
			require.Equal(t, lua.Released{Held: true, To: lua.Next}, release(t, c, plain, p))
			requireHeir(t, s, next)
			require.Equal(t, []string{plain.Place(older, patience)}, places(t, s), "its place is lost with the lock")
			there.requireNothing(t)
			here.requireNothing(t)
		})
	}
}

func TestNextOneThatComesFirstHasTheLockWhoeverListens(t *testing.T) {
	s, c := startHeld(t)
	foreign := subscribe(t, s, "SUBSCRIBE", announcement.Channel)
	require.Equal(t, lua.Next, release(t, c, plain, toNext(true)).To)
	requireHeir(t, s, next)
	foreign.requireNothing(t)
}

// requireNext asserts that a lock that was not passed on before has been passed on now, to the next one in the process.
func requireNext(t *testing.T, out lua.Released) {
	t.Helper()
	require.WithinDuration(t, time.Now(), time.UnixMilli(out.Began), 10*time.Second)
	out.Began = 0
	require.Equal(t, lua.Released{Held: true, To: lua.Next}, out)
}

// The time goes with the lock, and it is free for once after it.
func TestLockThatStaysInOneProcessRemembersSinceWhen(t *testing.T) {
	_, c := startHeld(t)
	p := toNext(false)
	p.Turns = lua.Turns{Count: 4, Began: ago(time.Second / 5)}
	require.Equal(t, lua.Released{Held: true, To: lua.Next, Began: p.Turns.Began}, release(t, c, plain, p))
	p.Turns.Count, p.Turns.Began = 15, ago(time.Second/5)
	out, err := plain.Release(t.Context(), c, next, 0, p)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
}

func TestNextOneHasTheLockWhenNobodyElseWaits(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, near)
	requireNext(t, release(t, c, plain, toNext(false)))
	requireHeir(t, s, next)
	sub.requireNothing(t)
	out, err := plain.Release(t.Context(), c, next, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireEmpty(t, s)
}

func TestNextOneHasTheLockWhenOthersAreGone(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, near)
	enlist(t, c, plain, older, newer)
	requireNext(t, release(t, c, plain, toNext(false)))
	requireHeir(t, s, next)
	require.False(t, has(s, waiters))
}

func TestNextOneGetsAPlaceWhenAnotherHasTheLock(t *testing.T) {
	s, c := startHeld(t)
	there, here := attend(t, s, far), attend(t, s, near)
	ticket := enlist(t, c, plain, older)
	out := release(t, c, plain, toNext(false))
	require.Equal(t, lua.Released{Held: true, To: lua.Other, Ticket: out.Ticket}, out)
	require.Greater(t, out.Ticket, ticket)
	require.Equal(t, decimal(int64(out.Ticket)), ticketOf(t, s, plain.Place(next, patience)))
	requireTTL(t, s, waiters, 3*lua.MaxNap)
	requireHeir(t, s, older)
	there.requireGift(t, far, older, ticket, 0)

	given, err := plain.Release(t.Context(), c, older, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, given.To)
	requireHeir(t, s, next)
	here.requireGift(t, near, next, out.Ticket, 0)
}

func TestNextOneKeepsThePlaceThatItHas(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, far)
	enlist(t, c, plain, older)
	ticket := enlist(t, c, plain, next)
	require.Equal(t, lua.Released{Held: true, To: lua.Other, Ticket: ticket}, release(t, c, plain, toNext(false)))
	requireHeir(t, s, older)
	require.Equal(t, []string{plain.Place(next, patience)}, places(t, s))
}

// Then the message says so, as to any other, and the answer does not.
func TestNextOneHasTheLockByItsPlaceIfThatIsTheOldest(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, near)
	ticket := enlist(t, c, plain, next)
	enlist(t, c, plain, older)
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toNext(false)))
	requireHeir(t, s, next)
	sub.requireGift(t, near, next, ticket, 0)
	require.Equal(t, []string{plain.Place(older, patience)}, places(t, s))
}

// It has had its time: whoever listens gets a chance.
func TestReleaseIsAnnouncedWhenTheNextOneIsNotFirstAndOthersGetNothing(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older)
	p := toNext(false)
	p.Others = false
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	require.Len(t, places(t, s), 1)
}

func TestPlaceThatIsGivenUpIsGivenNothing(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, near)
	enlist(t, c, plain, next)
	s.Do(t, "ZADD", waiters, "1", plain.Place(me, patience)) // the acquisition was repeated late
	require.Equal(t, lua.Other, release(t, c, plain, lua.Passing{Others: true, GivenUp: plain.Place(me, patience)}).To)
	requireHeir(t, s, next)
	require.False(t, has(s, waiters))
}

// It got the lock without its place, as while a slot moves, and would get it back.
func TestReleaseIsNotForTheOneThatLeaves(t *testing.T) {
	s, c := startHeld(t)
	here, there := attend(t, s, near), attend(t, s, far)
	s.Do(t, "ZADD", waiters, "1", plain.Place(me, patience), "2", plain.Place(older, patience))
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toAll))
	requireHeir(t, s, older)
	there.requireGift(t, far, older, 2, 0)
	here.requireNothing(t)
	require.False(t, has(s, waiters))
}

// Who leaves without a lock leaves that of others as it is.
func TestPlaceIsGivenUpWithoutTheLock(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	enlist(t, c, plain, older, newer)
	for range 2 {
		out, err := plain.Release(t.Context(), c, older, 0, lua.Passing{Others: true, GivenUp: plain.Place(older, patience)})
		require.NoError(t, err)
		require.Equal(t, lua.Released{}, out)
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
		require.Equal(t, []string{plain.Place(newer, patience)}, places(t, s))
	}
	sub.requireNothing(t)
}

func TestForceUnlockKeepsThePlacesAndIsAnnounced(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	ticket := enlist(t, c, plain, older)
	out, err := lua.ForceUnlock(t.Context(), c, lock, announcement)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	hold(t, s, lock, me, "1", lease)
	require.Equal(t, ticket, enlist(t, c, plain, older))
}
