package lua_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// One script does not try for ever. The waiters behind hear the announcement.
func TestReleaseSkipsAtMostAHundredWaiters(t *testing.T) {
	s, c := startHeld(t)
	for i := range 100 {
		s.Do(t, "ZADD", waiters, strconv.Itoa(i), farther+":"+strconv.Itoa(i)+" 7000 plain")
	}
	sub := attend(t, s)
	ticket := register(t, c, plain, older)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, toAll))
	requireFree(t, s, lock)
	sub.requireBytes(t, unlocked)
	require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s))

	hold(t, s, lock, me, "1", lease)
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	sub.requireGrant(t, wire.Grant{Ticket: ticket, Streak: wire.Streak{Count: 1}})
}

// There may be a waiter that is not registered, so a lock is free now and then.
func TestLockWithALongStreakIsAnnounced(t *testing.T) {
	for _, of := range []struct {
		streak    int
		since     time.Duration
		p         lua.HandOver
		announced bool
	}{
		{15, 101 * time.Millisecond, toAll, true},
		{15, 101 * time.Millisecond, toNext(false), true},
		{3, 1001 * time.Millisecond, toAll, true},
		{11, time.Hour, toNext(false), true},
		{3, -time.Hour, toAll, true}, // the clock was set back
		{19, 200 * time.Millisecond, toAll, false},
		{14, time.Minute, toAll, false},
		{3, 200 * time.Millisecond, toAll, false},
	} {
		for again := true; again; {
			s, c := startHeld(t)
			sub := attend(t, s)
			ticket := register(t, c, plain, older)
			now := time.Now()
			began := now.Add(-of.since).UnixMilli()
			of.p.Streak = wire.Streak{Count: of.streak, Began: began}
			out := release(t, c, plain, of.p)
			again = time.Since(now) > 700*time.Millisecond // the streak may have become too long
			switch {
			case again:
			case !of.announced:
				require.Equal(t, lua.Other, out.To, "%+v", of)
				sub.requireGrant(t, wire.Grant{Ticket: ticket,
					Streak: wire.Streak{Count: of.streak + 1, Began: began}})
			default:
				require.Equal(t, lua.Released{Held: true}, out, "%+v", of)
				requireFree(t, s, lock)
				sub.requireBytes(t, unlocked)
				require.Equal(t, []string{plain.Registration(older, waiterLease)}, registrations(t, s))
			}
		}
	}
}

// The first hand-over notes no begin; see TestReleaseSkipsAtMostAHundredWaiters.
func TestBeginOfAStreakIsNotedWhereItIsUnknown(t *testing.T) {
	for _, count := range []int{1, 15} {
		s, c := startHeld(t)
		sub := attend(t, s)
		ticket := register(t, c, plain, older)
		p := toAll
		p.Streak = wire.Streak{Count: count}
		require.Equal(t, lua.Other, release(t, c, plain, p).To)
		sub.requireGrant(t, wire.Grant{Ticket: ticket, Streak: wire.Streak{Count: count + 1}})
	}
	_, c := startHeld(t)
	p := toNext(false)
	p.Streak = wire.Streak{Count: 1}
	out := release(t, c, plain, p)
	require.WithinDuration(t, time.Now(), time.UnixMilli(out.Began), 10*time.Second)
}

// The ticket in a message says which refusal it belongs to. Clocks are set back, and a promoted
// replica has another.
func TestLaterWaiterGetsALargerTicketWhateverTheClockSays(t *testing.T) {
	s, c := startHeld(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	s.Do(t, "ZADD", waiters, decimal(ahead), plain.Registration(older, waiterLease))
	require.Equal(t, ahead+1, register(t, c, plain, newer))
	require.Equal(t, ahead, register(t, c, plain, older), "it keeps its own")
	require.Equal(t, []string{plain.Registration(older, waiterLease),
		plain.Registration(newer, waiterLease)}, registrations(t, s))
}

// The registrations of a hot lock follow each other within milliseconds, and cost less.
func TestTicketsOfAHotLockAreInOrder(t *testing.T) {
	s, c := startHeld(t)
	var last int64
	owners := make([]string, 200)
	for i := range owners {
		owners[i] = farther + ":" + strconv.Itoa(100+i)
		ticket := register(t, c, plain, owners[i])
		require.Greater(t, ticket, last)
		require.Equal(t, ticket, register(t, c, plain, owners[i]), "it keeps its own")
		last = ticket
	}
	require.WithinDuration(t, time.Now(), time.UnixMicro(last), eventually)
	for i, registration := range registrations(t, s) {
		require.Equal(t, plain.Registration(owners[i], waiterLease), registration)
	}
	requireTTL(t, s, waiters, 3*lua.LongestSleep)
}

// The ticket of one waiter is ahead of a clock that was set back. Waiters behind it must not pass
// it until the clock catches up, however fast they follow each other.
func TestHotLockWhoseClockWasSetBackKeepsItsOrder(t *testing.T) {
	s, c := startHeld(t)
	register(t, c, plain, newer)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	s.Do(t, "ZADD", waiters, decimal(ahead), plain.Registration(older, waiterLease))
	s.Do(t, "PEXPIRE", waiters, ms(time.Hour+3*lua.LongestSleep))
	for i := range 20 {
		require.Equal(t, ahead+1+int64(i), register(t, c, plain, farther+":"+strconv.Itoa(100+i)))
		require.Equal(t, ahead, register(t, c, plain, older), "it keeps its own")
	}
}

// Two clients that wait with leases of their own share the lock's description.
func TestRegistrationHasItsOwnLease(t *testing.T) {
	e := lua.NewExclusive(lock, true)
	for range 2 {
		require.Equal(t, older+" 7000 fenced", e.Registration(older, 7*time.Second))
		require.Equal(t, newer+" 300000 fenced", e.Registration(newer, 5*time.Minute))
		require.Equal(t, newer+" 1 plain", plain.Registration(newer, 1999*time.Microsecond))
	}
	require.Equal(t, lockChannel, e.Channel())
}

// An operator who lost the counter may well begin again with the time in nanoseconds, which a
// double cannot represent exactly.
func TestTokensBeyondTheNumbersOfLuaAreExact(t *testing.T) {
	s, c := start(t)
	token := int64(1_790_000_000_000_000_001)
	s.Do(t, "SET", counter, decimal(token))
	sub := attend(t, s)
	acquires := func(owner string) {
		t.Helper()
		fence, _, holder, err := fenced.Acquire(t.Context(), c, owner, waiterLease, "")
		require.NoError(t, err)
		require.Nil(t, holder)
		require.Equal(t, token, fence)
		state, err := lua.InspectFenced(t.Context(), c, lock)
		require.NoError(t, err)
		require.Equal(t, token, state.Fence)
	}
	for range 3 {
		token++
		acquires(me)
		acquires(me)
		ticket := register(t, c, fenced, older)
		require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, fenced, toAll))
		token++
		sub.requireGrant(t, wire.Grant{Ticket: ticket, Fence: token, Streak: wire.Streak{Count: 1}})
		acquires(older) // it does not trust its message
		requireTTL(t, s, counter, wire.NoExpiry)
		s.Do(t, "DEL", lock)
	}
}

func TestHolderWhoseCounterIsNoNumberGetsAnErrorAndNoToken(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, "a page")
	_, _, holder, err := fenced.Acquire(t.Context(), c, me, lease, "")
	require.Nil(t, holder)
	// The owner holds the lock, which must be undone.
	e := requireError(t, err, rediserr.ClassUnknown, "")
	require.Contains(t, e.Advice, counter)
}

// A plain release does not know the counter. The fenced waiter hears the announcement and asks. A
// fenced release needs no number for a plain waiter.
func TestReleaseMeetsARegistrationOfTheOtherKind(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", counter, "7")
	sub := attend(t, s)
	for _, p := range []lua.HandOver{toAll, toNext(false)} {
		s.Do(t, "DEL", waiters)
		hold(t, s, lock, me, "1", lease)
		register(t, c, fenced, older)
		require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
		requireFree(t, s, lock)
		sub.requireBytes(t, unlocked)
		sub.requireNothing(t)
	}
	s.Do(t, "DEL", waiters)
	hold(t, s, lock, me, "1", lease)
	ticket := register(t, c, plain, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireSuccessor(t, s, older)
	sub.requireGrant(t, wire.Grant{Ticket: ticket, Streak: wire.Streak{Count: 1}})
	require.Equal(t, "7", s.DoString(t, "GET", counter))
}

func TestGrantIsReadAsItWasWritten(t *testing.T) {
	for message, want := range map[string]wire.Grant{
		older + " 1790000000000001 0 1 0 order:42": {Lock: "order:42", Owner: older,
			Ticket: 1790000000000001, Streak: wire.Streak{Count: 1}},
		older + " 1790000000000001 9223372036854775807 17 250 order:42": {Lock: "order:42", Owner: older,
			Ticket: 1790000000000001, Fence: 9223372036854775807,
			Streak: wire.Streak{Count: 17, Began: 250}},
		older + " 1 2 0 0  a name with blanks ": {
			Lock: " a name with blanks ", Owner: older, Ticket: 1, Fence: 2},
		// As a server may format a score that ends in many zeros.
		older + " +1.79e+15 0 1 0 order:42": {Lock: "order:42", Owner: older,
			Ticket: 1790000000000000, Local: true, Streak: wire.Streak{Count: 1}},
		older + " +1 2 0 0 order:42": {
			Lock: "order:42", Owner: older, Ticket: 1, Local: true, Fence: 2},
		older + " 1 2 0 0 ": {Owner: older, Ticket: 1, Fence: 2},
	} {
		got, ok := wire.ParseGrant(message)
		require.True(t, ok, "%q", message)
		require.Equal(t, want, got, "%q", message)
	}
}

func TestOtherMessagesAreNoGrants(t *testing.T) {
	for _, message := range []string{"", "0", "1", older, older + " 1", older + " 1 2 3 4",
		older + " 1x 2 3 4 order:42", older + " 1 2x 3 4 order:42", older + " 1 2 3x 4 order:42",
		older + " 1 2 3 4x order:42", older + " 1 1.79e+15 3 4 order:42",
		older + " 1.5e+0 2 3 4 order:42", older + " 1.5 2 3 4 order:42",
		older + "  1 2 3 4 order:42", older + " 9223372036854775808 2 3 4 order:42"} {
		_, ok := wire.ParseGrant(message)
		require.False(t, ok, "%q", message)
	}
}

func TestClientThatMayRegisterListensOnPairedChannels(t *testing.T) {
	for _, name := range []string{
		"order:42", "{order}:42", "a b", "über", "redisson_lock__channel:x",
	} {
		own := wire.PairedChannels(wire.Channel(name), far)
		require.Equal(
			t,
			[]string{
				wire.Prefix("holdfast_lock_present", name),
				wire.Prefix("holdfast_lock_present", name) + ":" + far,
			},
			own,
		)
		require.Equal(t, own[0]+":announce", wire.AnnouncementChannel(name))
		require.NoError(t, wire.CheckSlots(name, own...))
	}
}

func TestChannelsOfLocksWithoutRegistrationsAreNotPaired(t *testing.T) {
	for _, channel := range []string{
		wire.RWChannel(lock), wire.FairChannel(lock, older), wire.FairChannel("{order}:42", older),
		wire.AnnouncementChannel(lock), present, "", "redisson_lock__channel",
		"a redisson_lock__channel:{order:42}",
	} {
		require.Empty(t, wire.PairedChannels(channel, far), channel)
	}
}

// A connection may be lost with the command under way, which then arrives after the next one.
func TestAttachThatComesOnceMoreDoesNotShortenTheLease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", 3*lease)
	attach := func() {
		attached, err := lua.Transfer(t.Context(), c, lock, other, me, lease)
		require.NoError(t, err)
		require.True(t, attached)
	}
	attach()
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	held, err := lua.Renew(t.Context(), c, 2*lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	attach()
	requireLock(t, s, lock, map[string]string{me: "1"}, 2*lease)
}

func TestRenewReportsForEachLockWhetherItIsHeld(t *testing.T) {
	s, c := start(t)
	hold(t, s, "mine", me, "2", lease)
	hold(t, s, "other's", other, "1", lease)
	s.Do(t, "SET", "wrong type", "a page", "PX", ms(lease))
	hold(t, s, "mine too", me, "1", lease)

	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{
		{"mine", me, false}, {"other's", me, false}, {"absent", me, false}, {"wrong type", me, false},
		{"mine too", me, false}, {"other's", other, false},
	})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false, false, true, true}, held)
	requireLock(t, s, "mine", map[string]string{me: "2"}, 3*lease)
	requireLock(t, s, "mine too", map[string]string{me: "1"}, 3*lease)
	requireLock(t, s, "other's", map[string]string{other: "1"}, 3*lease)
	requireFree(t, s, "absent")
	require.Equal(t, "a page", s.DoString(t, "GET", "wrong type"))
	requireTTL(t, s, "wrong type", lease)
}

// A lock that somebody has persisted, or that a program took for ever.
func TestLockWithoutExpiryIsHeld(t *testing.T) {
	s, c := start(t)
	for _, k := range calls {
		for _, state := range []string{"another's", "another reads", "another writes"} {
			if !strings.Contains(k.script, "_acquire") && k.script != "acquire.lua" ||
				state == "another reads" && k.script == "read_acquire.lua" {
				continue
			}
			plant(t, s, state)
			s.Do(t, "PERSIST", lock)
			u := k.useAsItIs(t, s, c)
			require.NoError(t, errorOf(u.values))
			require.Equal(t, ofLocks(u.before), ofLocks(u.after))
			if holder := holderOf(u.values); holder != nil || k.script != "batch_acquire.lua" {
				require.Equal(t, other, holder.Owner, "%s of %s", k.script, state)
				require.Equal(t, wire.NoExpiry, holder.TTL, "%s of %s", k.script, state)
			} // a level of a lock that it lost has no holder
		}
	}
}

func TestLockOfAnotherKindIsLeftAlone(t *testing.T) {
	s, c := start(t)
	for _, k := range calls {
		states := []string{"another reads", "another writes"}
		if strings.Contains(k.script, "read") || strings.Contains(k.script, "write") {
			states = []string{"mine", "another's", "queued for another's"}
		} else if !strings.Contains(k.script, "acquire") && !strings.Contains(k.script, "re") ||
			strings.Contains(k.script, "force") || slices.Contains(k.states, "queued") {
			continue // it is for any lock, or for what the other owner has
		}
		for _, state := range states {
			u := k.use(t, s, c, state)
			about := k.script + " of " + state
			require.NoError(t, errorOf(u.values), about)
			require.Equal(t, ofLocks(u.before), ofLocks(u.after), about)
			require.NotContains(t, outlined(u.values), "Held:true", about)
			require.NotContains(t, outlined(u.values), "[true", about)
		}
	}
}
