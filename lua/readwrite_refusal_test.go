//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// When a server refuses a part of a script of a read-write lock, no half of it may take effect.
//
// preferring is pair with precedence for writers that wait.

func TestRefusedReadLeavesTheLockAsItWas(t *testing.T) {
	for _, rule := range []string{"-pexpire", "-set", "-hset"} {
		for name, refused := range map[string]func(*testing.T, client) error{
			"another reader": func(t *testing.T, c client) error {
				_, err := pair.AcquireRead(t.Context(), c, me, 1, 3*lease, true, false)
				return err
			},
			"a nested read": func(t *testing.T, c client) error {
				held := lua.Held{Lock: pair.Lock, Owner: other, Read: true}
				_, err := lua.Reenter(t.Context(), c, held, 2, 3*lease)
				return err
			},
		} {
			t.Run(name+" "+rule, func(t *testing.T) {
				s, c := startAs(t, rule)
				plantReader(t, s, lease)
				requireError(t, refused(t, c), lua.ClassPermanent, "NOPERM")
				requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
				requireTTL(t, s, holdKey(other, 1), lease)
				requireKeys(t, s, lock, holdKey(other, 1))
			})
		}
		t.Run("the first reader "+rule, func(t *testing.T) {
			s, c := startAs(t, rule)
			_, err := pair.AcquireRead(t.Context(), c, me, 1, lease, true, false)
			requireError(t, err, lua.ClassPermanent, "NOPERM")
			requireKeys(t, s)
		})
		t.Run("a writer that reads "+rule, func(t *testing.T) {
			s, c := startAs(t, rule)
			s.Do(t, "HSET", lock, "mode", "write", me+":write", "1")
			s.Do(t, "PEXPIRE", lock, ms(lease))
			_, err := pair.AcquireRead(t.Context(), c, me, 1, 3*lease, true, false)
			requireError(t, err, lua.ClassPermanent, "NOPERM")
			requireLock(t, s, lock, map[string]string{"mode": "write", me + ":write": "1"}, lease)
			requireKeys(t, s, lock)
		})
	}
}

func TestRefusedWriteLeavesTheLockFree(t *testing.T) {
	for _, rule := range []string{"-pexpire", "-hset"} {
		s, c := startAs(t, rule)
		_, err := preferring.AcquireWrite(t.Context(), c, me, 1, lease, true)
		requireError(t, err, lua.ClassPermanent, "NOPERM")
		requireKeys(t, s)
	}
}

func TestReleaseInEitherModeSucceedsWithoutPermissionForTheChannel(t *testing.T) {
	for name, release := range map[string]func(*testing.T, client) (lua.Released, error){
		"read": func(t *testing.T, c client) (lua.Released, error) {
			return pair.ReleaseRead(t.Context(), c, me, 0)
		},
		"write": func(t *testing.T, c client) (lua.Released, error) {
			return pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
		},
		"force": func(t *testing.T, c client) (lua.Released, error) {
			return pair.ForceUnlock(t.Context(), c, "write")
		},
	} {
		for _, rule := range []string{"-publish", "resetchannels"} {
			t.Run(name+" "+rule, func(t *testing.T) {
				s, c := startAs(t, rule)
				if name == "read" {
					read(t, c, me, 1, lease)
				} else {
					write(t, c, me, lease)
				}
				out, err := release(t, c)
				require.NoError(t, err)
				require.True(t, out.Held)
				require.Contains(t, out.Refusal, "NOPERM")
				requireKeys(t, s)
			})
		}
	}
}

func TestWriterThatMayNotBeginATurnStillLetsReadersIn(t *testing.T) {
	s, c := startAs(t, "-set")
	write(t, c, me, lease)
	s.Do(t, "SET", readerKey, "1")
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	out, err := preferring.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireKeys(t, s)
	sub.requireBytes(t, array("message", pairChannel, "1"))
}

func TestServerOutOfMemoryRefusesBothModes(t *testing.T) {
	s, c := start(t)
	fill(t, s)
	_, err := preferring.AcquireRead(t.Context(), c, me, 1, lease, true, false)
	requireError(t, err, lua.ClassPermanent, "OOM")
	_, err = preferring.AcquireWrite(t.Context(), c, me, 1, lease, true)
	requireError(t, err, lua.ClassPermanent, "OOM")
	requireKeys(t, s)
}

func TestServerOutOfMemoryStillSaysWhoReadsOrWrites(t *testing.T) {
	s, c := start(t)
	plantReader(t, s, lease)
	fill(t, s)
	holder, err := preferring.AcquireWrite(t.Context(), c, me, 1, lease, true)
	require.NoError(t, err)
	require.Equal(t, other, holder.Owner)
	s.Do(t, "HDEL", lock, other)
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	s.Do(t, "HSET", lock, "mode", "write", other+":write", "1")
	fill(t, s)
	holder, err = preferring.AcquireRead(t.Context(), c, me, 1, lease, true, false)
	require.NoError(t, err)
	require.Equal(t, other, holder.Owner)
}

func TestServerOutOfMemoryShortensNoReadHold(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, lease)
	_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true}, 2,
		3*lease)
	require.NoError(t, err)
	fill(t, s)
	// One level remains; as far as this owner knows, it lasts for the longer lease.
	out, err := pair.ReleaseRead(t.Context(), c, me, 1)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	read(t, c, other, 1, lease)
	_, err = pair.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	requireTTL(t, s, lock, 3*lease)

	_, err = pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	requireKeys(t, s)
}

func TestServerOutOfMemoryRenewsReadsAndDowngrades(t *testing.T) {
	s, c := start(t)
	write(t, c, me, lease)
	read(t, c, me, 1, lease)
	s.Do(t, "SET", readerKey, "1")
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel) // a full server may refuse it
	fill(t, s)
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, me, true}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	requireTTL(t, s, holdKey(me, 1), 3*lease)

	out, err := preferring.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true, Reading: true}, out)
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "1"}, 3*lease)
	sub.requireBytes(t, array("message", pairChannel, "1"))
	_, err = pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	requireFree(t, s, lock)
	sub.requireBytes(t, array("message", pairChannel, "0"))
}
