package lua_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestRefusedWaiterHasAPlaceAndItsTicket(t *testing.T) {
	for kind, e := range map[string]*lua.Exclusive{"p": plain, "f": fenced} {
		t.Run(kind, func(t *testing.T) {
			s, c := startHeld(t)
			_, ticket, holder, err := e.Acquire(t.Context(), c, older, patience, e.Place(older, patience))
			require.NoError(t, err)
			require.Equal(t, me, holder.Owner)
			require.InDelta(t, lease, holder.TTL, float64(5*time.Second))
			require.Zero(t, holder.Nap)
			require.Equal(t, []string{older + " 7000 " + kind}, places(t, s))
			require.Equal(t, ticketOf(t, s, older+" 7000 "+kind), decimal(int64(ticket)))
			require.InDelta(t, time.Now().UnixMicro(), int64(ticket), float64(time.Minute.Microseconds()))
			requireTTL(t, s, waiters, 3*lua.MaxNap)
			requireLock(t, s, lock, map[string]string{me: "1"}, lease)
			require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
		})
	}
}

func TestWaiterThatAsksAgainKeepsItsPlace(t *testing.T) {
	s, c := startHeld(t)
	ticket := enlist(t, c, plain, older)
	enlist(t, c, plain, newer)
	s.Do(t, "PEXPIRE", waiters, "1000")
	for range 2 {
		require.Equal(t, ticket, enlist(t, c, plain, older))
		require.Equal(t, []string{older + " 7000 p", newer + " 7000 p"}, places(t, s))
		requireTTL(t, s, waiters, 3*lua.MaxNap)
		require.Greater(t, s.DoInt(t, "PTTL", waiters), int64(10_000), "all are kept by one who asks")
	}
}

func TestPlaceThatWasLostIsNewThen(t *testing.T) {
	s, c := startHeld(t)
	ticket := enlist(t, c, plain, older)
	for name, lose := range map[string]func(){
		"given up": func() {
			out, err := plain.Release(t.Context(), c, older, 0, lua.Passing{GivenUp: plain.Place(older, patience)})
			require.NoError(t, err)
			require.Equal(t, lua.Released{}, out)
		},
		"forgotten": func() {
			s.Do(t, "PEXPIRE", waiters, "1")
			require.Eventually(t, func() bool { return !has(s, waiters) }, eventually, poll)
		},
		"given the lock": func() {
			sub := attend(t, s, far)
			out, err := plain.Release(t.Context(), c, me, 0, lua.Passing{Others: true})
			require.NoError(t, err)
			require.Equal(t, lua.Other, out.To)
			sub.requireGift(t, far, older, ticket, 0)
			s.Do(t, "DEL", lock)
			hold(t, s, lock, me, "1", lease)
		},
	} {
		lose()
		require.False(t, has(s, waiters), name)
		again := enlist(t, c, plain, older)
		require.Greater(t, again, ticket, name)
		ticket = again
	}
}

// A message tells by its ticket which refusal it answers. Commands that the server reads at once are the closest that there are.
// Clocks are set back, and a replica that takes over has another.
func TestWhoComesLaterHasALargerTicketWhateverTheClockSays(t *testing.T) {
	s, c := startHeld(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	s.Do(t, "ZADD", waiters, decimal(ahead), plain.Place(older, patience))
	require.Equal(t, lua.Ticket(ahead+1), enlist(t, c, plain, newer))
	require.Equal(t, lua.Ticket(ahead), enlist(t, c, plain, older), "it keeps its own")
	require.Equal(t, []string{plain.Place(older, patience), plain.Place(newer, patience)}, places(t, s))
}

func TestNoTwoPlacesHaveOneTicket(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	enlist(t, c, plain, me) // the server gets to know the scripts
	_, err := plain.Release(t.Context(), c, me, 0, lua.Passing{GivenUp: plain.Place(me, patience)})
	require.NoError(t, err)
	sha := func(file string) string {
		return s.DoString(t, "SCRIPT", "LOAD", lua.Scripts()[file])
	}
	acquire, release := sha("acquire.lua"), sha("release.lua")
	place := plain.Place(me, patience)
	var commands rueidis.Commands
	for range 100 {
		commands = append(commands,
			c.B().Evalsha().Sha1(acquire).Numkeys(2).Key(lock, waiters).Arg(me, "1", "7000", place).Build(),
			c.B().Evalsha().Sha1(release).Numkeys(2).Key(lock, waiters).
				Arg(me, "0", announcement.Channel, "0", "PUBLISH", "", "0", "0", "", "0", place).Build())
	}
	last := int64(0)
	for i, reply := range c.DoMulti(t.Context(), commands...) {
		if i%2 == 1 {
			status, err := reply.AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, status)
			continue
		}
		values, err := reply.ToArray()
		require.NoError(t, err)
		ticket, err := values[3].AsInt64()
		require.NoError(t, err)
		require.Greater(t, ticket, last)
		last = ticket
	}
}

func TestWaiterWithoutAPlaceLeavesNothing(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		s, c := startHeld(t)
		fence, ticket, holder, err := e.Acquire(t.Context(), c, older, lease, "")
		require.NoError(t, err, name)
		require.Equal(t, me, holder.Owner)
		require.Zero(t, ticket)
		require.Zero(t, fence)
		require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
	}
}

func TestPlaceIsLostWithTheLock(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			enlist(t, c, e, older, newer)
			s.Do(t, "DEL", lock)
			for range 2 { // the answer may not come
				fence, ticket, holder, err := e.Acquire(t.Context(), c, older, lease, e.Place(older, patience))
				require.NoError(t, err)
				require.Nil(t, holder)
				require.Zero(t, ticket)
				require.Equal(t, e == fenced, fence == 1)
				requireLock(t, s, lock, map[string]string{older: "1"}, lease)
				require.Equal(t, []string{e.Place(newer, patience)}, places(t, s))
			}
		})
	}
}

func TestFreeExclusiveLockIsTakenAndNothingElseIsWritten(t *testing.T) {
	for _, place := range []string{"", plain.Place(me, lease)} {
		s, c := start(t)
		for range 2 {
			fence, ticket, holder, err := plain.Acquire(t.Context(), c, me, lease, place)
			require.NoError(t, err)
			require.Nil(t, holder)
			require.Zero(t, ticket)
			require.Zero(t, fence)
			requireLock(t, s, lock, map[string]string{me: "1"}, lease)
			require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
		}
	}
}

func TestFreeFencedExclusiveLockIsNumbered(t *testing.T) {
	s, c := start(t)
	for i := int64(1); i <= 3; i++ {
		for range 2 {
			fence, ticket, holder, err := fenced.Acquire(t.Context(), c, me, lease, fenced.Place(me, lease))
			require.NoError(t, err)
			require.Nil(t, holder)
			require.Zero(t, ticket)
			require.Equal(t, i, fence)
		}
		out, err := fenced.Release(t.Context(), c, me, 0, lua.Passing{})
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true}, out)
	}
	require.Equal(t, "3", s.DoString(t, "GET", counter))
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
}

func TestExclusiveLockWithoutExpiryIsWaitedFor(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lua.NoExpiry)
	_, ticket, holder, err := plain.Acquire(t.Context(), c, older, patience, plain.Place(older, patience))
	require.NoError(t, err)
	require.Equal(t, &lua.Holder{Owner: me, TTL: lua.NoExpiry}, holder)
	require.NotZero(t, ticket)
}

// Two clients that wait for leases of their own share what describes the lock.
func TestPlaceTellsTheLeaseWhateverWasAskedForBefore(t *testing.T) {
	e := lua.NewExclusive(lock, true)
	for range 2 {
		require.Equal(t, older+" 7000 f", e.Place(older, 7*time.Second))
		require.Equal(t, newer+" 300000 f", e.Place(newer, 5*time.Minute))
		require.Equal(t, newer+" 1 p", plain.Place(newer, 1999*time.Microsecond))
	}
	require.Equal(t, announcement.Channel, e.Channel())
}
