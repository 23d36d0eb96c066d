package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// toAll hands the lock over to waiters of all processes.
var toAll = lua.HandOver{Others: true}

// toNext hands the lock over to next, before or after others.
func toNext(first bool) lua.HandOver {
	return lua.HandOver{
		Others:         true,
		Successor:      plain.Registration(next, waiterLease),
		SuccessorFirst: first,
	}
}

// release releases the lock that me holds.
func release(t *testing.T, c rueidis.CoreClient, e *lua.Exclusive, p lua.HandOver) lua.Released {
	t.Helper()
	out, err := e.Release(t.Context(), c, me, 0, p)
	require.NoError(t, err)
	return out
}

// requireSuccessor asserts that a waiter holds the lock, for its own lease.
func requireSuccessor(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	require.Equal(t, map[string]string{owner: "1"}, s.DoMap(t, "HGETALL", lock))
	left := s.DoInt(t, "PTTL", lock)
	require.LessOrEqual(t, left, waiterLease.Milliseconds())
	require.Greater(t, left, waiterLease.Milliseconds()-5000)
}

// requireEmpty asserts that no key is left.
func requireEmpty(t *testing.T, s *redistest.Server) {
	t.Helper()
	require.Empty(t, s.DoStrings(t, "KEYS", "*"))
}

func TestReleaseThatNobodyWaitsForIsAnnounced(t *testing.T) {
	for name, p := range map[string]lua.HandOver{
		"to nobody": {}, "to all": toAll, "gives up": {Withdrawn: plain.Registration(me, lease)},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireEmpty(t, s)
			sub.requireAnnounced(t)
			sub.requireNothing(t)
		})
	}
}

func TestReleaseGrantsTheLockToTheOldestRegistration(t *testing.T) {
	s, c := startHeld(t)
	sub, behind := attend(t, s, far), attend(t, s, farther)
	first := register(t, c, plain, older)
	second := register(t, c, plain, newer)

	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toAll))
	requireSuccessor(t, s, older)
	require.Equal(t, []string{plain.Registration(newer, waiterLease)}, registrations(t, s))
	sub.requireGrant(t, far, older, first, 0)
	sub.requireNothing(t)
	behind.requireNothing(t)

	out, err := plain.Release(t.Context(), c, older, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, out.To)
	requireSuccessor(t, s, newer)
	require.False(t, has(s, waiters))
	behind.requireGrant(t, farther, newer, second, 0)

	out, err = plain.Release(t.Context(), c, newer, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireEmpty(t, s)
	sub.requireAnnounced(t)
	behind.requireAnnounced(t)
}

func TestEachRegistrationIsGrantedTheLockOnceAndInTurn(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	const n = 50
	var tickets []int64
	for i := range n {
		tickets = append(tickets, register(t, c, plain, far+":"+strconv.Itoa(i)))
	}
	owner := me
	for i := range n {
		out, err := plain.Release(t.Context(), c, owner, 0, toAll)
		require.NoError(t, err)
		require.Equal(t, lua.Other, out.To)
		before := owner
		owner = far + ":" + strconv.Itoa(i)
		requireSuccessor(t, s, owner)
		sub.requireGrantBy(t, before, far, owner, tickets[i], 0, lua.Streak{Count: 1})
	}
	require.False(t, has(s, waiters))
}

func TestReleaseOfALevelGrantsTheLockToNobody(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older)
	for range 2 {
		out, err := plain.Release(t.Context(), c, me, 1, toNext(true))
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true}, out)
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	}
	require.Len(t, registrations(t, s), 1)
	sub.requireNothing(t)
}

func TestReleaseByAnotherOwnerGrantsTheLockToNobody(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older)
	for _, count := range []int{0, 1} {
		out, err := plain.Release(t.Context(), c, other, count, toNext(true))
		require.NoError(t, err)
		require.Equal(t, lua.Released{}, out)
	}
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.Len(t, registrations(t, s), 1)
	sub.requireNothing(t)
}

func TestWaiterWithoutListenerIsSkipped(t *testing.T) {
	s, c := startHeld(t)
	register(t, c, plain, older)
	ticket := register(t, c, plain, newer)
	gone, sub := attend(t, s, far), attend(t, s, farther)
	gone.leave(t, s, present+":"+far, 0)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	requireSuccessor(t, s, newer)
	sub.requireGrant(t, farther, newer, ticket, 0)
	require.False(t, has(s, waiters), "the skipped waiter has lost its registration")
}

func TestReleaseIsAnnouncedWhenAllWaitersAreGone(t *testing.T) {
	s, c := startHeld(t)
	register(t, c, plain, older, newer)
	sub := listen(t, s, "SUBSCRIBE", lockChannel, present) // a channel that no waiter listens on
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireEmpty(t, s)
	sub.requireAnnounced(t)
}

// One script does not try for ever. The waiters behind hear the announcement.
func TestReleaseSkipsAtMostAHundredWaiters(t *testing.T) {
	s, c := startHeld(t)
	for i := range 100 {
		s.Do(t, "ZADD", waiters, strconv.Itoa(i), farther+":"+strconv.Itoa(i)+" 7000 p")
	}
	sub := attend(t, s, far)
	ticket := register(t, c, plain, older)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s))

	hold(t, s, lock, me, "1", lease)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	sub.requireGrant(t, far, older, ticket, 0)
}

func TestReleaseIsAnnouncedWhenRedissonListens(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older)
	foreign := subscribe(t, s, "SUBSCRIBE", lockChannel) // like one of Redisson's
	for _, p := range []lua.HandOver{toAll, toNext(false)} {
		require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
		requireFree(t, s, lock)
		foreign.requireAnnounced(t)
		sub.requireAnnounced(t)
		require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s),
			"a waiter that hears it asks, and stays registered if it is late")
		hold(t, s, lock, me, "1", lease)
	}
	foreign.leave(t, s, lockChannel, 1)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
}

func TestReleaseIsAnnouncedWhenOneWaitsUnregistered(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older)
	require.Equal(t, present+":announce", lua.AnnouncementChannel(lock))
	without := listen(t, s, "SUBSCRIBE", lockChannel, present, present+":"+farther,
		lua.AnnouncementChannel(lock))
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireFree(t, s, lock)
	without.requireAnnounced(t)
	sub.requireAnnounced(t)
}

// There may be a waiter that is not registered.
func TestLockWithALongStreakIsAnnounced(t *testing.T) {
	for name, of := range map[string]struct {
		streak int
		since  time.Duration
		p      lua.HandOver
	}{
		"to others":              {15, 101 * time.Millisecond, toAll},
		"to others first":        {15, 101 * time.Millisecond, toNext(false)},
		"seldom, and longer":     {3, 1001 * time.Millisecond, toAll},
		"seldom, to next first":  {11, time.Hour, toNext(false)},
		"the clock was set back": {3, -time.Hour, toAll},
	} {
		t.Run(name, func(t *testing.T) {
			p := of.p
			p.Streak = lua.Streak{Count: of.streak, Began: ago(of.since)}
			s, c := startHeld(t)
			sub := attend(t, s, far)
			ticket := register(t, c, plain, older)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
			requireFree(t, s, lock)
			sub.requireAnnounced(t)
			require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s))

			hold(t, s, lock, me, "1", lease)
			p.Streak = lua.Streak{}
			require.Equal(t, lua.Other, release(t, c, plain, p).To)
			sub.requireGrant(t, far, older, ticket, 0)
		})
	}
}

func TestLockIsHandedOverUntilTheStreakIsLongInCountAndTime(t *testing.T) {
	for name, of := range map[string]struct {
		streak int
		since  time.Duration
	}{
		"often":    {19, 200 * time.Millisecond},
		"for long": {14, time.Minute},
		"seldom":   {3, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			sub := attend(t, s, far)
			ticket := register(t, c, plain, older)
			p := toAll
			p.Streak = lua.Streak{Count: of.streak, Began: ago(of.since)}
			require.Equal(t, lua.Other, release(t, c, plain, p).To)
			sub.requireGrantAfter(t, far, older, ticket, 0,
				lua.Streak{Count: of.streak + 1, Began: p.Streak.Began})
		})
	}
}

// The first hand-over notes no begin; see requireGrant.
func TestBeginOfAStreakIsNotedWhereItIsUnknown(t *testing.T) {
	for _, count := range []int{1, 15} {
		s, c := startHeld(t)
		sub := attend(t, s, far)
		ticket := register(t, c, plain, older)
		p := toAll
		p.Streak = lua.Streak{Count: count}
		require.Equal(t, lua.Other, release(t, c, plain, p).To)
		sub.requireGrantAfter(t, far, older, ticket, 0, lua.Streak{Count: count + 1})
	}
	_, c := startHeld(t)
	p := toNext(false)
	p.Streak = lua.Streak{Count: 1}
	out := release(t, c, plain, p)
	require.WithinDuration(t, time.Now(), time.UnixMilli(out.Began), 10*time.Second)
}

func TestSuccessorThatComesFirstGetsTheLockHoweverLongTheStreak(t *testing.T) {
	_, c := startHeld(t)
	p := toNext(true)
	p.Streak = lua.Streak{Count: 15, Began: 1}
	require.Equal(t, lua.Successor, release(t, c, plain, p).To)
}

func TestSuccessorThatComesFirstGetsTheLock(t *testing.T) {
	for name, others := range map[string]bool{
		"before others": true, "whether others wait or not": false,
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			there, here := attend(t, s, far), attend(t, s, near)
			register(t, c, plain, older, next)
			p := toNext(true)
			p.Others = others
			require.Equal(t, lua.Released{Held: true, To: lua.Successor}, release(t, c, plain, p))
			requireSuccessor(t, s, next)
			require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s),
				"the grant removes its registration")
			there.requireNothing(t)
			here.requireNothing(t)
		})
	}
}

func TestSuccessorThatComesFirstGetsTheLockEvenIfOthersListen(t *testing.T) {
	s, c := startHeld(t)
	foreign := subscribe(t, s, "SUBSCRIBE", lockChannel)
	require.Equal(t, lua.Successor, release(t, c, plain, toNext(true)).To)
	requireSuccessor(t, s, next)
	foreign.requireNothing(t)
}

// requireToSuccessor asserts that a lock without a streak has been handed over to the next waiter
// of the process.
func requireToSuccessor(t *testing.T, out lua.Released) {
	t.Helper()
	require.Equal(t, lua.Released{Held: true, To: lua.Successor}, out)
}

// The begin of the streak goes with the lock, and the streak ends when the lock is free.
func TestStreakInOneProcessKeepsItsBegin(t *testing.T) {
	_, c := startHeld(t)
	p := toNext(false)
	p.Streak = lua.Streak{Count: 4, Began: ago(time.Second / 5)}
	require.Equal(t, lua.Released{Held: true, To: lua.Successor, Began: p.Streak.Began},
		release(t, c, plain, p))
	p.Streak.Count, p.Streak.Began = 15, ago(time.Second/5)
	out, err := plain.Release(t.Context(), c, next, 0, p)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
}

func TestSuccessorGetsTheLockWhenNobodyElseWaits(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, near)
	requireToSuccessor(t, release(t, c, plain, toNext(false)))
	requireSuccessor(t, s, next)
	sub.requireNothing(t)
	out, err := plain.Release(t.Context(), c, next, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireEmpty(t, s)
}

func TestSuccessorGetsTheLockWhenOthersAreGone(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, near)
	register(t, c, plain, older, newer)
	requireToSuccessor(t, release(t, c, plain, toNext(false)))
	requireSuccessor(t, s, next)
	require.False(t, has(s, waiters))
}

func TestSuccessorIsRegisteredWhenAnotherGetsTheLock(t *testing.T) {
	s, c := startHeld(t)
	there, here := attend(t, s, far), attend(t, s, near)
	ticket := register(t, c, plain, older)
	out := release(t, c, plain, toNext(false))
	require.Equal(t, lua.Released{Held: true, To: lua.Other, Ticket: out.Ticket}, out)
	require.Greater(t, out.Ticket, ticket)
	require.Equal(t, decimal(out.Ticket), ticketOf(t, s, plain.Registration(next, waiterLease)))
	requireTTL(t, s, waiters, 3*lua.MaxNap)
	requireSuccessor(t, s, older)
	there.requireGrant(t, far, older, ticket, 0)

	given, err := plain.Release(t.Context(), c, older, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, given.To)
	requireSuccessor(t, s, next)
	here.requireGrantBy(t, older, near, next, out.Ticket, 0, lua.Streak{Count: 1})
}

func TestSuccessorKeepsItsRegistration(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, far)
	register(t, c, plain, older)
	ticket := register(t, c, plain, next)
	require.Equal(t, lua.Released{Held: true, To: lua.Other, Ticket: ticket},
		release(t, c, plain, toNext(false)))
	requireSuccessor(t, s, older)
	require.Equal(t, []string{plain.Registration(next, waiterLease)}, registrations(t, s))
}

// As with any waiter, the message grants the lock then, not the reply.
func TestSuccessorWithTheOldestRegistrationIsGrantedTheLock(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, near)
	ticket := register(t, c, plain, next)
	register(t, c, plain, older)
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toNext(false)))
	requireSuccessor(t, s, next)
	sub.requireGrant(t, near, next, ticket, 0)
	require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s))
}

// The successor's streak has ended, so clients that listen get a chance.
func TestReleaseIsAnnouncedWhenNeitherSuccessorNorOthersGetTheLock(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older)
	p := toNext(false)
	p.Others = false
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	require.Len(t, registrations(t, s), 1)
}

func TestWithdrawnRegistrationIsGrantedNothing(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, near)
	register(t, c, plain, next)
	s.Do(
		t,
		"ZADD",
		waiters,
		"1",
		plain.Registration(me, waiterLease),
	) // a late retry of the acquisition
	require.Equal(
		t,
		lua.Other,
		release(t, c, plain,
			lua.HandOver{Others: true, Withdrawn: plain.Registration(me, waiterLease)}).To,
	)
	requireSuccessor(t, s, next)
	require.False(t, has(s, waiters))
}

// The waiter got the lock without its registration, as while a slot moves, and could be granted it
// back.
func TestReleaseIsNotGrantedToTheOwnerThatLeaves(t *testing.T) {
	s, c := startHeld(t)
	here, there := attend(t, s, near), attend(t, s, far)
	s.Do(t, "ZADD", waiters, "1", plain.Registration(me, waiterLease), "2",
		plain.Registration(older, waiterLease))
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, toAll))
	requireSuccessor(t, s, older)
	there.requireGrant(t, far, older, 2, 0)
	here.requireNothing(t)
	require.False(t, has(s, waiters))
}

// A waiter that leaves without the lock leaves others' registrations as they are.
func TestRegistrationIsWithdrawnWithoutTheLock(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	register(t, c, plain, older, newer)
	for range 2 {
		out, err := plain.Release(t.Context(), c, older, 0,
			lua.HandOver{Others: true, Withdrawn: plain.Registration(older, waiterLease)})
		require.NoError(t, err)
		require.Equal(t, lua.Released{}, out)
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
		require.Equal(t, []string{plain.Registration(newer, waiterLease)}, registrations(t, s))
	}
	sub.requireNothing(t)
}

func TestForceUnlockKeepsTheRegistrationsAndIsAnnounced(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	ticket := register(t, c, plain, older)
	out, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireFree(t, s, lock)
	sub.requireAnnounced(t)
	hold(t, s, lock, me, "1", lease)
	require.Equal(t, ticket, register(t, c, plain, older))
}
