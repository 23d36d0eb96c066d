package lua_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

type client = rueidis.CoreClient

// Transitions between the modes of a read-write lock: downgrades, readers that died, readers of
// another library, force unlocks.

func TestWriterThatReadsBecomesAReaderAndLetsOthersIn(t *testing.T) {
	s, c := start(t)
	write(t, c, me, 3*lease)
	read(t, c, me, 1, lease)
	requireLock(t, s, lock, map[string]string{"mode": "write", me + ":write": "1", me: "1"},
		3*lease)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	out, err := pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true, Reading: true}, out)
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "1"}, lease)
	sub.requireBytes(t, array("message", pairChannel, "1"))
	sub.requireNothing(t)
	read(t, c, other, 1, lease)
}

func TestWriterWhoseReadsHaveExpiredFreesTheLock(t *testing.T) {
	s, c := start(t)
	write(t, c, me, 3*lease)
	read(t, c, me, 1, lease)
	s.Do(t, "DEL", holdKey(me, 1))
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	out, err := pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireKeys(t, s)
	sub.requireBytes(t, array("message", pairChannel, "1"))
}

func TestWriterThatStopsReadingGoesOnWriting(t *testing.T) {
	s, c := start(t)
	write(t, c, me, 3*lease)
	read(t, c, me, 1, lease)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	out, err := pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireLock(t, s, lock, map[string]string{"mode": "write", me + ":write": "1"}, 3*lease)
	requireKeys(t, s, lock)
	sub.requireNothing(t)
}

func TestDeadReaderOfThisLibraryIsForgottenWhenTheLastLiveOneLeaves(t *testing.T) {
	s, c := start(t)
	read(t, c, other, 1, lease)
	s.Do(t, "HSET", lock, me, "2") // the keys of its holds have expired
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	_, err := pair.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	requireKeys(t, s)
	sub.requireBytes(t, array("message", pairChannel, "0"))
}

// Redisson 3.44 to 3.52 renew the hash for such a reader, but not its holds.
func TestReaderOfRedissonWhoseHoldsHaveExpiredKeepsTheLockUntilTheHashEnds(t *testing.T) {
	for name, left := range map[string]time.Duration{
		"a hash that Java renews": 3 * lease, "a hash without expiry": lua.NoExpiry,
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			read(t, c, me, 1, lease)
			hold(t, s, lock, other, "2", left)
			if left == lua.NoExpiry {
				s.Do(t, "PERSIST", lock)
			}
			sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
			out, err := pair.ReleaseRead(t.Context(), c, me, 0)
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true}, out)
			requireLock(t, s, lock, map[string]string{"mode": "read", other: "2"}, left)
			requireKeys(t, s, lock)
			sub.requireNothing(t) // the waiters know when the hash ends
			holder, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
			require.NoError(t, err)
			require.Equal(t, other, holder.Owner)

			s.Do(t, "PEXPIRE", lock, "0")
			write(t, c, me, lease)
			requireLock(t, s, lock, map[string]string{"mode": "write", me + ":write": "1"}, lease)
		})
	}
}

func TestReaderThatDiedKeepsTheLockForItsOwnLeaseOnly(t *testing.T) {
	s, c := start(t)
	plantReader(t, s, 10*time.Second)
	read(t, c, me, 1, lease)
	_, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, me, true}})
	require.NoError(t, err)
	requireTTL(t, s, lock, 3*lease)
	_, err = pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, 10*time.Second)
}

// A waiter sleeps for the lease of the reader that leaves. No message would wake it when the lease
// of the dead one ends.
func TestReaderThatLeavesOneThatMayBeDeadHasWaitersAskAgain(t *testing.T) {
	s, c := start(t)
	plantReader(t, s, 2*time.Second)
	read(t, c, me, 1, lease)
	read(t, c, "third:3", 1, lease)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	_, err := pair.ReleaseRead(t.Context(), c, "third:3", 0)
	require.NoError(t, err)
	sub.requireNothing(t)
	_, err = pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	require.Less(t, s.DoInt(t, "PTTL", lock), int64(2001))
	sub.requireBytes(t, array("message", pairChannel, "0"))
}

func TestReadersOfAnotherLibraryAreLeftAlone(t *testing.T) {
	s, c := start(t)
	plantReader(t, s, lease, 2*lease)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	read(t, c, me, 1, lease)
	holder, err := pair.AcquireWrite(t.Context(), c, "third:3", 1, lease, true)
	require.NoError(t, err)
	require.NotNil(t, holder)
	_, err = pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "2"}, 2*lease)
	requireTTL(t, s, holdKey(other, 1), lease)
	requireTTL(t, s, holdKey(other, 2), 2*lease)
	sub.requireNothing(t)
}

func TestHoldKeyWithoutExpiryCountsAsHeld(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, client){
		"when a reader leaves": func(t *testing.T, c client) {
			_, err := pair.ReleaseRead(t.Context(), c, me, 0)
			require.NoError(t, err)
		},
		"when its own writer leaves": func(t *testing.T, c client) {
			_, err := pair.ReleaseWrite(t.Context(), c, other, 0, "", 0)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			plantReader(t, s, lua.NoExpiry)
			if name == "when a reader leaves" {
				read(t, c, me, 1, lease)
			} else {
				s.Do(t, "HSET", lock, "mode", "write", other+":write", "1")
			}
			s.Do(t, "PEXPIRE", lock, ms(lease))
			leave(t, c)
			requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
			requireTTL(t, s, holdKey(other, 1), lua.NoExpiry)
			reentered, err := lua.Reenter(t.Context(), c,
				lua.Held{Lock: pair.Lock, Owner: other, Read: true}, 2, lease)
			require.NoError(t, err)
			require.True(t, reentered)
			holder, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
			require.NoError(t, err)
			require.Equal(t, other, holder.Owner)
		})
	}
}

func TestHashWithoutExpiryIsHeld(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lock, "mode", "read", other, "1")
	holder, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
	require.NoError(t, err)
	require.Equal(t, &lua.Holder{Owner: other, TTL: lua.NoExpiry}, holder)
	s.Do(t, "HSET", lock, "mode", "write", other+":write", "1")
	holder, err = pair.AcquireRead(t.Context(), c, me, 1, lease, true, false)
	require.NoError(t, err)
	require.Equal(t, &lua.Holder{Owner: other, TTL: lua.NoExpiry}, holder)
	requireTTL(t, s, lock, lua.NoExpiry)
}

func TestForceUnlockFreesOnlyTheModeThatHolds(t *testing.T) {
	modes := map[string]func(*testing.T, client) (lua.Released, error){
		"read": func(t *testing.T, c client) (lua.Released, error) {
			return pair.ForceUnlock(t.Context(), c, "read")
		},
		"write": func(t *testing.T, c client) (lua.Released, error) {
			return pair.ForceUnlock(t.Context(), c, "write")
		},
	}
	for held := range modes {
		for mode, force := range modes {
			t.Run(mode+" of a lock held to "+held, func(t *testing.T) {
				s, c := start(t)
				if held == "write" {
					write(t, c, me, lease)
				} else {
					plantReader(t, s, lease, lua.NoExpiry)
				}
				read(t, c, me, 1, lease)
				before := s.DoMap(t, "HGETALL", lock)
				sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
				out, err := force(t, c)
				require.NoError(t, err)
				require.Equal(t, lua.Released{Held: mode == held}, out)
				if mode == held {
					requireKeys(t, s)
					sub.requireBytes(t, array("message", pairChannel, "1"))
				} else {
					requireLock(t, s, lock, before, lease)
					sub.requireNothing(t)
				}
			})
		}
	}
}

func TestLockOfAnotherKindIsNeitherTakenNorDestroyed(t *testing.T) {
	for name, run := range readWriteOperations {
		for _, owner := range []string{me, other} {
			t.Run(name+" by "+owner, func(t *testing.T) {
				s, c := start(t)
				hold(t, s, lock, me, "2", lease)
				sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
				require.NoError(t, run(t, c, owner))
				requireLock(t, s, lock, map[string]string{me: "2"}, lease)
				requireKeys(t, s, lock)
				sub.requireNothing(t)
			})
		}
	}
}

// operations are all uses of a read-write lock. With another owner's lock in the way, they must
// report that nothing was held or acquired.
var readWriteOperations = map[string]func(t *testing.T, c client, owner string) error{
	"read": func(t *testing.T, c client, owner string) error {
		holder, err := pair.AcquireRead(t.Context(), c, owner, 1, 3*lease, true, false)
		require.NotNil(t, holder)
		return err
	},
	"write": func(t *testing.T, c client, owner string) error {
		holder, err := pair.AcquireWrite(t.Context(), c, owner, 1, 3*lease, true)
		require.NotNil(t, holder)
		return err
	},
	"nested read": func(t *testing.T, c client, owner string) error {
		held, err := lua.Reenter(t.Context(), c,
			lua.Held{Lock: pair.Lock, Owner: owner, Read: true}, 2, 3*lease)
		require.False(t, held)
		return err
	},
	"nested write": func(t *testing.T, c client, owner string) error {
		held, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: lua.WriteField(owner)},
			2, 3*lease)
		require.False(t, held)
		return err
	},
	"read release": func(t *testing.T, c client, owner string) error {
		return nothingReleased(t)(pair.ReleaseRead(t.Context(), c, owner, 0))
	},
	"partial read release": func(t *testing.T, c client, owner string) error {
		return nothingReleased(t)(pair.ReleaseRead(t.Context(), c, owner, 1))
	},
	"write release": func(t *testing.T, c client, owner string) error {
		return nothingReleased(t)(pair.ReleaseWrite(t.Context(), c, owner, 0, "", 0))
	},
	"force unlock of reads": func(t *testing.T, c client, _ string) error {
		return nothingReleased(t)(pair.ForceUnlock(t.Context(), c, "read"))
	},
	"force unlock of the writer": func(t *testing.T, c client, _ string) error {
		return nothingReleased(t)(pair.ForceUnlock(t.Context(), c, "write"))
	},
	"read renewal": func(t *testing.T, c client, owner string) error {
		held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, owner, true}})
		require.Equal(t, []bool{false}, held)
		return err
	},
}

func nothingReleased(t *testing.T) func(lua.Released, error) error {
	return func(out lua.Released, err error) error {
		require.False(t, out.Held)
		return err
	}
}

// snapshot returns all that a server has but the clock: each key with its contents, and whether it
// expires.
func snapshot(t *testing.T, s *redistest.Server) map[string]any {
	t.Helper()
	keys := map[string]any{}
	for _, key := range s.DoStrings(t, "KEYS", "*") {
		expires := s.DoInt(t, "PTTL", key) >= 0
		if s.DoString(t, "TYPE", key) == "hash" {
			keys[key] = []any{s.DoMap(t, "HGETALL", key), expires}
		} else {
			keys[key] = []any{s.DoString(t, "GET", key), expires}
		}
	}
	return keys
}

// The reply to the first run may be lost. The second run must leave the same state behind.
func TestScriptOfAReadWriteLockRunTwiceChangesNothing(t *testing.T) {
	repeated := map[string]func(*testing.T, client) error{
		"read": func(t *testing.T, c client) error {
			_, err := pair.AcquireRead(t.Context(), c, "third:3", 1, lease, true, false)
			return err
		},
		"write": func(t *testing.T, c client) error {
			_, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
			return err
		},
		"nested read": func(t *testing.T, c client) error {
			_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true},
				3, 3*lease)
			return err
		},
		"nested write": func(t *testing.T, c client) error {
			_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: lua.WriteField(me)},
				2, 3*lease)
			return err
		},
		"partial read release": func(t *testing.T, c client) error {
			_, err := pair.ReleaseRead(t.Context(), c, me, 1)
			return err
		},
		"read release": func(t *testing.T, c client) error {
			_, err := pair.ReleaseRead(t.Context(), c, me, 0)
			return err
		},
		"write release": func(t *testing.T, c client) error {
			_, err := pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
			return err
		},
		"read renewal": func(t *testing.T, c client) error {
			_, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, me, true}})
			return err
		},
		"force unlock of reads": func(t *testing.T, c client) error {
			_, err := pair.ForceUnlock(t.Context(), c, "read")
			return err
		},
		"force unlock of the writer": func(t *testing.T, c client) error {
			_, err := pair.ForceUnlock(t.Context(), c, "write")
			return err
		},
	}
	states := map[string]func(*testing.T, *redistest.Server, client){
		"free":    func(*testing.T, *redistest.Server, client) {},
		"writing": func(t *testing.T, _ *redistest.Server, c client) { write(t, c, me, lease) },
		"reading": func(t *testing.T, s *redistest.Server, c client) {
			plantReader(t, s, lease)
			read(t, c, me, 1, lease)
			read(t, c, me, 2, 2*lease)
		},
		"writing and reading": func(t *testing.T, _ *redistest.Server, c client) {
			write(t, c, me, lease)
			read(t, c, me, 1, lease)
			read(t, c, me, 2, 2*lease)
		},
	}
	s, c := start(t)
	for state, prepare := range states {
		for name, run := range repeated {
			t.Run(name+" of a lock "+state, func(t *testing.T) {
				s.Do(t, "FLUSHALL")
				prepare(t, s, c)
				require.NoError(t, run(t, c))
				once := snapshot(t, s)
				require.NoError(t, run(t, c))
				require.Equal(t, once, snapshot(t, s))
			})
		}
	}
}
