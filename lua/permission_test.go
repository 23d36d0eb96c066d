//go:build redis

package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// startAs returns a server, and a client whose user may do everything but what the ACL rules
// forbid.
func startAs(t *testing.T, rules ...string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(
		t,
		append(
			[]string{"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"},
			rules...)...)
	return s, s.Client(t,
		func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" })
}

func TestReleaseSucceedsWithoutPermissionForTheChannel(t *testing.T) {
	for name, run := range map[string]func(*testing.T, rueidis.Client) (lua.Released, error){
		"release": func(t *testing.T, c rueidis.Client) (lua.Released, error) {
			return unlock(t.Context(), c, lock, me, 0)
		},
		"force unlock": func(t *testing.T, c rueidis.Client) (lua.Released, error) {
			return plain.ForceUnlock(t.Context(), c, lua.Classic)
		},
	} {
		for rule, rules := range map[string][]string{
			"channel": {"resetchannels"}, "command": {"-publish"},
		} {
			t.Run(name+" without the "+rule, func(t *testing.T) {
				s, c := startAs(t, rules...)
				hold(t, s, lock, me, "1", lease)
				sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
				out, err := run(t, c)
				require.NoError(t, err)
				require.True(t, out.Held)
				require.Contains(t, out.Refusal, "NOPERM")
				requireFree(t, s, lock)
				sub.requireNothing(t)
			})
		}
	}
}

func TestLockThatMayNotExpireIsNotTaken(t *testing.T) {
	s, c := startAs(t, "-pexpire")
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	e := requireError(t, err, lua.ClassPermanent, "NOPERM")
	require.Contains(t, e.Advice, "ACL")
	requireFree(t, s, lock)
}

func TestRefusedExtensionLeavesTheLockAsItWas(t *testing.T) {
	s, c := startAs(t, "-pexpire")
	hold(t, s, lock, me, "1", lease)
	_, err := lockPlain(t.Context(), c, lock, me, 3*lease)
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestMissingPermissionIsPermanent(t *testing.T) {
	for name, rules := range map[string][]string{
		"scripts":  {"-evalsha", "-eval"},
		"commands": {"-hexists", "-hlen", "-hrandfield", "-hset", "-hdel"},
		"keys":     {"resetkeys", "~elsewhere:*"},
	} {
		for _, o := range operations {
			t.Run(o.name+" without "+name, func(t *testing.T) {
				s, c := startAs(t, rules...)
				o.prepare(t, s)
				requireError(t, o.run(t.Context(), c), lua.ClassPermanent, "NOPERM")
				if o.before == "" {
					requireFree(t, s, lock)
				} else {
					requireLock(t, s, lock, map[string]string{me: o.before}, lease)
				}
			})
		}
	}
}

func TestPartialReleaseReportsARefusalThatIsNotAboutMemory(t *testing.T) {
	s, c := startAs(t, "-hset")
	hold(t, s, lock, me, "2", lease)
	_, err := unlock(t.Context(), c, lock, me, 1)
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	requireLock(t, s, lock, map[string]string{me: "2"}, lease)
}
