package lua_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// A command whose reply was lost is sent again. It names no successor then: the begin of the
// successor's lease would be unknown.
func TestRetriedReleaseDoublesNothing(t *testing.T) {
	toNextFenced := lua.HandOver{
		Successor:      fenced.Registration(next, waiterLease),
		SuccessorFirst: true,
	}
	givingUp := lua.HandOver{Others: true, Withdrawn: plain.Registration(me, lease)}
	var (
		announced = lua.Released{Held: true}
		toOther   = lua.Released{Held: true, To: lua.Other}
		toTheNext = lua.Released{Held: true, To: lua.Successor}
		numbered  = lua.Released{Held: true, To: lua.Successor, Fence: 1}
	)
	for name, test := range map[string]struct {
		e        *lua.Exclusive
		p        lua.HandOver
		waiting  []string
		first    lua.Released
		holder   string
		messages int
	}{
		"announced": {plain, toAll, nil, announced, "", 1},
		"to others": {
			plain, toAll, []string{older, newer}, toOther, older, 1},
		"to others, fenced": {
			fenced, toAll, []string{older, newer}, toOther, older, 1},
		"to others, one registration given up": {
			plain, givingUp, []string{older}, toOther, older, 1},
		"to others, the next has a registration": {
			plain, toNext(false), []string{older, next}, toOther, older, 1},
		"to the next": {
			plain, toNext(true), []string{older}, toTheNext, next, 0},
		"to the next, fenced": {
			fenced, toNextFenced, []string{older}, numbered, next, 0},
		"to the next, with no others waiting": {plain, toNext(false), nil, toTheNext, next, 0},
		"to the next by its registration": {
			plain, toNext(false), []string{next, older}, toOther, next, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			for _, client := range []string{near, far, farther} {
				attend(t, s, client)
			}
			register(t, c, test.e, test.waiting...)
			monitor := s.Monitor(t)
			first := release(t, c, test.e, test.p)
			first.Ticket, first.Began = 0, 0 // only the first reply has them
			require.Equal(t, test.first, first)
			require.Equal(t, test.messages, messages(t, monitor))
			if test.holder == "" {
				requireFree(t, s, lock)
			} else {
				requireSuccessor(t, s, test.holder)
			}
			found := everything(t, s)
			for range 2 {
				require.Equal(t, lua.Released{}, release(t, c, test.e, test.p))
				require.Zero(t, messages(t, monitor))
				require.Equal(t, found, everything(t, s))
			}
		})
	}
}

// Meanwhile the lock was granted to a later waiter, and then released.
func TestLateReleaseLeavesTheLockOfOthersAlone(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, far)
	register(t, c, plain, older)
	require.Equal(t, lua.Successor, release(t, c, plain, toNext(true)).To)
	out, err := plain.Release(t.Context(), c, next, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, out.To)
	for _, holder := range []string{older, ""} {
		require.Equal(t, lua.Released{}, release(t, c, plain, toNext(true)))
		if holder == "" {
			requireEmpty(t, s)
			break
		}
		requireSuccessor(t, s, holder)
		_, err := plain.Release(t.Context(), c, older, 0, toAll)
		require.NoError(t, err)
	}
}

// messages returns how many messages scripts have published.
func messages(t *testing.T, m *redistest.Monitor) (n int) {
	t.Helper()
	for _, command := range m.CommandsOfScripts(t) {
		if slices.Contains([]string{"publish", "spublish"}, command[0]) {
			n++
		}
	}
	return n
}

// everything returns all that a server has of the lock but the times when it ends.
func everything(t *testing.T, s *redistest.Server) []any {
	t.Helper()
	return []any{s.DoMap(t, "HGETALL", lock), s.Do(t, "ZRANGE", waiters, "0", "-1", "WITHSCORES"),
		s.Do(t, "GET", counter), s.DoInt(t, "DBSIZE")}
}
