package lua_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// A command whose answer was lost is sent again. It names no heir: nobody could say when the lease of that one began.
func TestRepeatedReleaseDoublesNothing(t *testing.T) {
	toNextFenced := lua.Passing{Next: fenced.Place(next, patience), NextFirst: true}
	givingUp := lua.Passing{Others: true, GivenUp: plain.Place(me, lease)}
	var (
		announced = lua.Released{Held: true}
		toOther   = lua.Released{Held: true, To: lua.Other}
		toTheNext = lua.Released{Held: true, To: lua.Next}
		numbered  = lua.Released{Held: true, To: lua.Next, Fence: 1}
	)
	for name, test := range map[string]struct {
		e        *lua.Exclusive
		p        lua.Passing
		waiting  []string
		first    lua.Released
		holder   string
		messages int
	}{
		"announced":                         {plain, toAll, nil, announced, "", 1},
		"to others":                         {plain, toAll, []string{older, newer}, toOther, older, 1},
		"to others, fenced":                 {fenced, toAll, []string{older, newer}, toOther, older, 1},
		"to others, one place given up":     {plain, givingUp, []string{older}, toOther, older, 1},
		"to others, the next has a place":   {plain, toNext(false), []string{older, next}, toOther, older, 1},
		"to the next":                       {plain, toNext(true), []string{older}, toTheNext, next, 0},
		"to the next, fenced":               {fenced, toNextFenced, []string{older}, numbered, next, 0},
		"to the next, as nobody else waits": {plain, toNext(false), nil, toTheNext, next, 0},
		"to the next by its place":          {plain, toNext(false), []string{next, older}, toOther, next, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			for _, client := range []string{near, far, farther} {
				attend(t, s, client)
			}
			enlist(t, c, test.e, test.waiting...)
			monitor := s.Monitor(t)
			first := release(t, c, test.e, test.p)
			first.Ticket, first.Began = 0, 0 // only the first answer tells them
			require.Equal(t, test.first, first)
			require.Equal(t, test.messages, messages(t, monitor))
			if test.holder == "" {
				requireFree(t, s, lock)
			} else {
				requireHeir(t, s, test.holder)
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

// The lock has gone on meanwhile: to one who came later, and then to nobody.
func TestLateReleaseLeavesTheLockOfOthersAlone(t *testing.T) {
	s, c := startHeld(t)
	attend(t, s, far)
	enlist(t, c, plain, older)
	require.Equal(t, lua.Next, release(t, c, plain, toNext(true)).To)
	out, err := plain.Release(t.Context(), c, next, 0, toAll)
	require.NoError(t, err)
	require.Equal(t, lua.Other, out.To)
	for _, holder := range []string{older, ""} {
		require.Equal(t, lua.Released{}, release(t, c, plain, toNext(true)))
		if holder == "" {
			requireEmpty(t, s)
			break
		}
		requireHeir(t, s, holder)
		_, err := plain.Release(t.Context(), c, older, 0, toAll)
		require.NoError(t, err)
	}
}

// messages are how many scripts have published.
func messages(t *testing.T, m *redistest.Monitor) (n int) {
	t.Helper()
	for _, command := range m.CommandsOfScripts(t) {
		if slices.Contains([]string{"publish", "spublish"}, command[0]) {
			n++
		}
	}
	return n
}
