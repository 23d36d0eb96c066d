package lua_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The keys beside the lock called lock, for its waiters.
const (
	waiters = "holdfast_lock_waiters:{order:42}"
	present = "holdfast_lock_present:{order:42}"
)

// Clients and their owners, which wait for a lock that me holds.
const (
	near    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11" // the client of me
	next    = near + ":2"
	far     = "90a4cbd5-6c57-4b54-a6c4-3f1f40e0b3de"
	older   = far + ":1"
	farther = "c2d7b5a0-1b43-4d8e-9a57-60f0c9a1e77d"
	newer   = farther + ":4"
)

// waiterLease is the lease of waiters.
const waiterLease = 7 * time.Second

// The lock in both kinds.
var (
	plain  = lua.NewExclusive(lock, false)
	fenced = lua.NewExclusive(lock, true)
)

// startHeld returns a server on which me holds the lock, and a client.
func startHeld(t *testing.T) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	return s, c
}

// register has owners refused, which registers them. It returns the ticket of the last one.
func register(
	t *testing.T,
	c rueidis.CoreClient,
	e *lua.Exclusive,
	owners ...string,
) (ticket int64) {
	t.Helper()
	for _, owner := range owners {
		fence, got, holder, err := e.Acquire(
			t.Context(),
			c,
			owner,
			waiterLease,
			e.Registration(owner, waiterLease),
		)
		require.NoError(t, err)
		require.NotNil(t, holder)
		require.Zero(t, fence)
		require.Greater(t, got, ticket)
		ticket = got
	}
	return ticket
}

// registrations returns those of all waiters, first come first.
func registrations(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	return s.DoStrings(t, "ZRANGE", waiters, "0", "-1")
}

// ticketOf returns the ticket of a registration, as Redis has it.
func ticketOf(t *testing.T, s *redistest.Server, registration string) string {
	t.Helper()
	return s.DoString(t, "ZSCORE", waiters, registration)
}

func TestRefusedWaiterIsRegisteredAndHasATicket(t *testing.T) {
	for kind, e := range map[string]*lua.Exclusive{"p": plain, "f": fenced} {
		t.Run(kind, func(t *testing.T) {
			s, c := startHeld(t)
			_, ticket, holder, err := e.Acquire(
				t.Context(),
				c,
				older,
				waiterLease,
				e.Registration(older, waiterLease),
			)
			require.NoError(t, err)
			require.Equal(t, me, holder.Owner)
			require.InDelta(t, lease, holder.TTL, float64(5*time.Second))
			require.Zero(t, holder.Nap)
			require.Equal(t, []string{older + " 7000 " + kind}, registrations(t, s))
			require.Equal(t, ticketOf(t, s, older+" 7000 "+kind), decimal(ticket))
			require.InDelta(
				t,
				time.Now().UnixMicro(),
				ticket,
				float64(time.Minute.Microseconds()),
			)
			requireTTL(t, s, waiters, 3*lua.MaxNap)
			requireLock(t, s, lock, map[string]string{me: "1"}, lease)
			require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
		})
	}
}

func TestWaiterThatAsksAgainKeepsItsRegistration(t *testing.T) {
	s, c := startHeld(t)
	ticket := register(t, c, plain, older)
	register(t, c, plain, newer)
	s.Do(t, "PEXPIRE", waiters, "1000")
	for range 2 {
		require.Equal(t, ticket, register(t, c, plain, older))
		require.Equal(t, []string{older + " 7000 p", newer + " 7000 p"}, registrations(t, s))
		requireTTL(t, s, waiters, 3*lua.MaxNap)
		require.Greater(
			t,
			s.DoInt(t, "PTTL", waiters),
			int64(10_000),
			"a waiter that asks keeps all of them",
		)
	}
}

func TestLostRegistrationIsMadeAnew(t *testing.T) {
	s, c := startHeld(t)
	ticket := register(t, c, plain, older)
	for name, lose := range map[string]func(){
		"given up": func() {
			out, err := plain.Release(t.Context(), c, older, 0,
				lua.HandOver{Withdrawn: plain.Registration(older, waiterLease)})
			require.NoError(t, err)
			require.Equal(t, lua.Released{}, out)
		},
		"forgotten": func() {
			s.Do(t, "PEXPIRE", waiters, "1")
			require.Eventually(t, func() bool { return !has(s, waiters) }, eventually, poll)
		},
		"granted the lock": func() {
			sub := attend(t, s, far)
			out, err := plain.Release(t.Context(), c, me, 0, lua.HandOver{Others: true})
			require.NoError(t, err)
			require.Equal(t, lua.Other, out.To)
			sub.requireGrant(t, far, older, ticket, 0)
			s.Do(t, "DEL", lock)
			hold(t, s, lock, me, "1", lease)
		},
	} {
		lose()
		require.False(t, has(s, waiters), name)
		again := register(t, c, plain, older)
		require.Greater(t, again, ticket, name)
		ticket = again
	}
}

// The ticket in a message says which refusal it belongs to. Commands that the server reads at once
// come as close as commands can. Clocks are set back, and a promoted replica has another.
func TestLaterWaiterGetsALargerTicketWhateverTheClockSays(t *testing.T) {
	s, c := startHeld(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	s.Do(t, "ZADD", waiters, decimal(ahead), plain.Registration(older, waiterLease))
	require.Equal(t, ahead+1, register(t, c, plain, newer))
	require.Equal(t, ahead, register(t, c, plain, older), "it keeps its own")
	require.Equal(
		t,
		[]string{plain.Registration(older, waiterLease), plain.Registration(newer, waiterLease)},
		registrations(t, s),
	)
}

func TestUnregisteredWaiterLeavesNothing(t *testing.T) {
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

func TestRegistrationIsRemovedWhenTheLockIsTaken(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			register(t, c, e, older, newer)
			s.Do(t, "DEL", lock)
			for range 2 { // the first reply may be lost
				fence, ticket, holder, err := e.Acquire(
					t.Context(),
					c,
					older,
					lease,
					e.Registration(older, waiterLease),
				)
				require.NoError(t, err)
				require.Nil(t, holder)
				require.Zero(t, ticket)
				require.Equal(t, e == fenced, fence == 1)
				requireLock(t, s, lock, map[string]string{older: "1"}, lease)
				require.Equal(t, []string{e.Registration(newer, waiterLease)}, registrations(t, s))
			}
		})
	}
}

func TestFreeExclusiveLockIsTakenAndNothingElseIsWritten(t *testing.T) {
	for _, registration := range []string{"", plain.Registration(me, lease)} {
		s, c := start(t)
		for range 2 {
			fence, ticket, holder, err := plain.Acquire(t.Context(), c, me, lease, registration)
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
			fence, ticket, holder, err := fenced.Acquire(
				t.Context(),
				c,
				me,
				lease,
				fenced.Registration(me, lease),
			)
			require.NoError(t, err)
			require.Nil(t, holder)
			require.Zero(t, ticket)
			require.Equal(t, i, fence)
		}
		out, err := fenced.Release(t.Context(), c, me, 0, lua.HandOver{})
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true}, out)
	}
	require.Equal(t, "3", s.DoString(t, "GET", counter))
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
}

func TestExclusiveLockWithoutExpiryHasWaiters(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lua.NoExpiry)
	_, ticket, holder, err := plain.Acquire(
		t.Context(),
		c,
		older,
		waiterLease,
		plain.Registration(older, waiterLease),
	)
	require.NoError(t, err)
	require.Equal(t, &lua.Holder{Owner: me, TTL: lua.NoExpiry}, holder)
	require.NotZero(t, ticket)
}

// Two clients that wait with leases of their own share the lock's description.
func TestRegistrationHasItsOwnLease(t *testing.T) {
	e := lua.NewExclusive(lock, true)
	for range 2 {
		require.Equal(t, older+" 7000 f", e.Registration(older, 7*time.Second))
		require.Equal(t, newer+" 300000 f", e.Registration(newer, 5*time.Minute))
		require.Equal(t, newer+" 1 p", plain.Registration(newer, 1999*time.Microsecond))
	}
	require.Equal(t, lockChannel, e.Channel())
}
