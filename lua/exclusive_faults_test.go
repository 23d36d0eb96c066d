//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// After the release nothing may fail any more, or waiters would not hear of it before its TTL ends.
func TestReleaseThatMayNotGrantIsAnnounced(t *testing.T) {
	channels := []string{"resetchannels", "&redisson_lock__channel:*"}
	for _, rules := range [][]string{
		{"-zpopmin"}, {"-pubsub"}, channels, {"-incr"}, {"-get"}, {"-hset"}, {"-pexpire"},
		{"-zpopmin", "-del"}, {"-pubsub", "-exists"}, {"-incr", "-zrem"}, {"-hset", "-zadd"},
	} {
		for name, p := range map[string]lua.HandOver{
			"to others": toAll,
			"to others before next": {
				Others: true, Successor: fenced.Registration(next, waiterLease)},
			"to others, and give up": {
				Others: true, Withdrawn: fenced.Registration(me, waiterLease)},
		} {
			t.Run(name+" with "+rules[0], func(t *testing.T) {
				s, c := startAs(t, rules...)
				hold(t, s, lock, me, "1", lease)
				sub := attend(t, s, far)
				s.Do(t, "ZADD", waiters, "1", fenced.Registration(older, waiterLease))
				out := release(t, c, fenced, p)
				if rules[0] == "resetchannels" && p.Successor != "" {
					// A grant to another process cannot be announced; one in this process needs no
					// message.
					require.Equal(t, lua.Successor, out.To)
					requireSuccessor(t, s, next)
					return
				}
				require.Equal(t, lua.Released{Held: true}, out)
				requireFree(t, s, lock)
				sub.requireAnnounced(t)
				sub.requireNothing(t)
			})
		}
	}
}

func TestReleaseThatMayNotHandOverToTheNextIsAnnounced(t *testing.T) {
	for _, rule := range []string{"-incr", "-get", "-hset", "-pexpire"} {
		t.Run(rule, func(t *testing.T) {
			s, c := startAs(t, rule)
			hold(t, s, lock, me, "1", lease)
			sub := attend(t, s, near)
			out := release(
				t,
				c,
				fenced,
				lua.HandOver{
					Successor:      fenced.Registration(next, waiterLease),
					SuccessorFirst: true,
				},
			)
			require.Equal(t, lua.Released{Held: true}, out)
			requireFree(t, s, lock)
			sub.requireAnnounced(t)
		})
	}
}

func TestHandOverNeedsNoPermissionForWhatIsOptional(t *testing.T) {
	for _, rule := range []string{"-exists", "-del", "-zadd", "-zscore", "-zrem", "-time", "-pttl"} {
		for name, p := range map[string]lua.HandOver{
			"to others": toAll, "to others before the next": toNext(false),
		} {
			t.Run(name+" with "+rule, func(t *testing.T) {
				s, c := startAs(t, rule)
				hold(t, s, lock, me, "1", lease)
				sub := attend(t, s, far)
				s.Do(t, "ZADD", waiters, "1", plain.Registration(older, waiterLease), "2",
					plain.Registration(newer, waiterLease))
				p.Withdrawn = plain.Registration(newer, waiterLease)
				p.Streak = lua.Streak{Count: 1, Began: 7}
				require.Equal(t, lua.Other, release(t, c, plain, p).To)
				requireSuccessor(t, s, older)
				sub.requireGrantAfter(t, far, older, 1, 0, lua.Streak{Count: 2, Began: 7})
			})
		}
	}
}

func TestRefusedReleaseLeavesTheLockAndTheRegistrations(t *testing.T) {
	for name, rules := range map[string][]string{
		"command":              {"-hdel"},
		"key of registrations": {"resetkeys", "~" + lock, "~" + counter},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startAs(t, rules...)
			hold(t, s, lock, me, "1", lease)
			sub := attend(t, s, far)
			s.Do(t, "ZADD", waiters, "1", fenced.Registration(older, waiterLease))
			found := everything(t, s)
			for _, p := range []lua.HandOver{toAll, toNext(true), toNext(false)} {
				_, err := fenced.Release(t.Context(), c, me, 0, p)
				requireError(t, err, lua.ClassPermanent, "NOPERM")
				require.Equal(t, found, everything(t, s))
				sub.requireNothing(t)
			}
			out, err := fenced.Release(t.Context(), c, me, 0, lua.HandOver{})
			if name == "command" {
				requireError(t, err, lua.ClassPermanent, "NOPERM")
				return
			}
			require.NoError(t, err, "without waiters it needs none of the keys")
			require.Equal(t, lua.Released{Held: true}, out)
			sub.requireAnnounced(t)
		})
	}
}

func TestWaiterWithoutPermissionForItsRegistrationIsRefused(t *testing.T) {
	for _, rules := range [][]string{
		{"-zadd"}, {"-zscore"}, {"-pexpire"}, {"-time"}, {"resetkeys", "~" + lock},
	} {
		t.Run(rules[0], func(t *testing.T) {
			s, c := startAs(t, rules...)
			hold(t, s, lock, me, "1", lease)
			s.Do(t, "ZADD", waiters, "1", plain.Registration(newer, waiterLease))
			if rules[0] == "-time" {
				s.Do(t, "DEL", waiters)
			}
			_, _, _, err := plain.Acquire(t.Context(), c, older, waiterLease,
				plain.Registration(older, waiterLease))
			requireError(t, err, lua.ClassPermanent, "NOPERM")
			requireLock(t, s, lock, map[string]string{me: "1"}, lease)
			_, _, holder, err := plain.Acquire(t.Context(), c, older, waiterLease, "")
			require.NoError(t, err)
			require.Equal(t, me, holder.Owner)
		})
	}
}

// An error would mean that the lock was not taken.
func TestLockIsTakenThoughItsRegistrationCannotBeRemoved(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			s, c := startAs(t, "-zrem")
			s.Do(t, "SET", waiters, "a page")
			for range 2 {
				_, _, holder, err := e.Acquire(t.Context(), c, me, lease, e.Registration(me, lease))
				require.NoError(t, err)
				require.Nil(t, holder)
				requireLock(t, s, lock, map[string]string{me: "1"}, lease)
			}
		})
	}
}

func TestWaiterThatMayNotTakeTheLockKeepsItsRegistration(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			s, c := startAs(t, "-pexpire")
			s.Do(t, "ZADD", waiters, "1", e.Registration(me, waiterLease))
			_, _, _, err := e.Acquire(t.Context(), c, me, waiterLease,
				e.Registration(me, waiterLease))
			requireError(t, err, lua.ClassPermanent, "NOPERM")
			requireFree(t, s, lock)
			require.Equal(t, []string{e.Registration(me, waiterLease)}, registrations(t, s))
		})
	}
}

// Another program writes to the keys beside the lock.
func TestReleaseWithOddKeysBesideTheLockIsAnnounced(t *testing.T) {
	for name, write := range map[string][]string{
		"registrations are a text":          {"SET", waiters, "a page"},
		"a registration of another program": {"ZADD", waiters, "1", "somebody"},
		"a registration of no kind":         {"ZADD", waiters, "1", older + " 7000"},
		"a registration without a client":   {"ZADD", waiters, "1", " 7000 p"},
		"a registration of another kind":    {"ZADD", waiters, "1", older + " seven p"},
		"a lease too long": {
			"ZADD", waiters, "1", older + " 99999999999999999999 p"},
	} {
		for to, p := range map[string]lua.HandOver{
			"others": toAll, "others before next": toNext(false),
			"others, and gives up": {Others: true, Withdrawn: plain.Registration(me, waiterLease)},
		} {
			t.Run(name+" to "+to, func(t *testing.T) {
				s, c := startHeld(t)
				sub := attend(t, s, far)
				s.Do(t, write...)
				require.Equal(t, lua.Released{Held: true}, release(t, c, plain, p))
				requireFree(t, s, lock)
				sub.requireAnnounced(t)
				sub.requireNothing(t)
			})
		}
	}
}

func TestRegistrationsThatAreATextAreNoRegistrations(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "SET", waiters, "a page")
	_, _, _, err := plain.Acquire(t.Context(), c, older, waiterLease,
		plain.Registration(older, waiterLease))
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, "a page", s.DoString(t, "GET", waiters))
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestServerOutOfMemoryRegistersAndHandsOver(t *testing.T) {
	for name, test := range map[string]struct {
		p  lua.HandOver
		to lua.To
	}{
		"to others":                 {toAll, lua.Other},
		"to the next":               {toNext(true), lua.Successor},
		"to others before the next": {toNext(false), lua.Other},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			sub := attend(t, s, far)
			fill(t, s)
			ticket := register(t, c, plain, older)
			require.Equal(t, ticket, register(t, c, plain, older))
			require.Equal(t, test.to, release(t, c, plain, test.p).To)
			if test.to == lua.Other {
				requireSuccessor(t, s, older)
				sub.requireGrant(t, far, older, ticket, 0)
			} else {
				requireSuccessor(t, s, next)
			}
		})
	}
}

func TestServerOutOfMemoryHandsOverAFencedLock(t *testing.T) {
	s, c := startHeld(t)
	sub := attend(t, s, far)
	fill(t, s)
	ticket := register(t, c, fenced, older)
	require.Equal(t, lua.Other, release(t, c, fenced, toAll).To)
	requireSuccessor(t, s, older)
	sub.requireGrant(t, far, older, ticket, 1)
}

func TestServerOutOfMemoryRefusesAFreeLockAndKeepsTheRegistration(t *testing.T) {
	for name, e := range map[string]*lua.Exclusive{"plain": plain, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			register(t, c, e, older)
			s.Do(t, "DEL", lock)
			fill(t, s)
			_, _, _, err := e.Acquire(t.Context(), c, older, waiterLease,
				e.Registration(older, waiterLease))
			requireError(t, err, lua.ClassPermanent, "OOM")
			requireFree(t, s, lock)
			require.Equal(t, []string{e.Registration(older, waiterLease)}, registrations(t, s))
		})
	}
}

func TestReplicaHandsNothingOver(t *testing.T) {
	s, c := start(t, redistest.WithArgs("--replicaof", "127.0.0.1", "1")) // no server listens there
	_, err := plain.Release(t.Context(), c, me, 0, toNext(false))
	requireError(t, err, lua.ClassPermanent, "READONLY")
	_, _, _, err = plain.Acquire(t.Context(), c, me, lease, plain.Registration(me, lease))
	requireError(t, err, lua.ClassPermanent, "READONLY")
	requireFree(t, s, lock)
}
