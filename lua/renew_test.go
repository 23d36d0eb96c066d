package lua_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestRenewReportsForEachLockWhetherItIsHeld(t *testing.T) {
	s, c := start(t)
	hold(t, s, "mine", me, "2", lease)
	hold(t, s, "other's", other, "1", lease)
	s.Do(t, "SET", "wrong type", "a page", "PX", ms(lease))
	hold(t, s, "mine too", me, "1", lease)

	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{
		{
			"mine", me, false,
		}, {"other's", me, false}, {"absent", me, false}, {"wrong type", me, false},
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

func TestRenewDoesNotExtendTheLeaseOfAnother(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{false}, held)
	requireTTL(t, s, lock, lease)
}

func TestRenewNeverShortensALease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", 3*lease)
	held, err := lua.Renew(t.Context(), c, lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	requireTTL(t, s, lock, 3*lease)
}

func TestRenewIsOneCommand(t *testing.T) {
	s, c := start(t)
	renewals := make([]lua.Held, 100)
	for i := range renewals {
		renewals[i] = lua.Held{Lock: fmt.Sprintf("{order}:%d", i), Owner: me}
		hold(t, s, renewals[i].Lock, me, "1", lease)
	}
	_, err := lua.Renew(t.Context(), c, lease, renewals) // loads the script
	require.NoError(t, err)
	monitor := s.Monitor(t)
	held, err := lua.Renew(t.Context(), c, 3*lease, renewals)
	require.NoError(t, err)
	require.NotContains(t, held, false)
	commands := monitor.Commands(t)
	require.Len(t, commands, 1)
	require.Equal(t, "evalsha", commands[0][0])
	for _, renewal := range renewals {
		requireTTL(t, s, renewal.Lock, 3*lease)
	}
}

func TestRenewOfNothingRenewsNothing(t *testing.T) {
	_, c := start(t)
	held, err := lua.Renew(t.Context(), c, lease, nil)
	require.NoError(t, err)
	require.Empty(t, held)
}
