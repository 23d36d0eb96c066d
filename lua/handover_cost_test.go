//go:build redis

package lua_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// What a release costs the server bounds how often a lock changes hands.
func TestReleaseCostsOneScriptAndTheseCommands(t *testing.T) {
	nextFenced := lua.HandOver{
		Others:         true,
		Successor:      fenced.Registration(next, waiterLease),
		SuccessorFirst: true,
	}
	second := toAll
	second.Streak = wire.Streak{Count: 1}
	for name, test := range map[string]struct {
		e        *lua.Exclusive
		p        lua.HandOver
		waiting  []string
		commands []string
	}{
		"to nobody":    {plain, lua.HandOver{}, nil, []string{"hdel", "publish"}},
		"nobody waits": {plain, toAll, nil, []string{"hdel", "zpopmin", "publish"}},
		"to the next":  {plain, toNext(true), nil, []string{"hdel", "zrem", "hset", "pexpire"}},
		"to the next, fenced": {fenced, nextFenced, nil,
			[]string{"hdel", "zrem", "incr", "get", "hset", "pexpire"}},
		"to the next, after others": {plain, toNext(false), nil,
			[]string{"hdel", "zpopmin", "pubsub", "zrem", "hset", "pexpire"}},
		"to another": {plain, toAll, []string{older},
			[]string{"hdel", "zpopmin", "pubsub", "hset", "pexpire", "publish"}},
		"to another, the second time": {plain, second, []string{older},
			[]string{"hdel", "zpopmin", "time", "pubsub", "hset", "pexpire", "publish"}},
		"to another, fenced": {fenced, toAll, []string{older},
			[]string{"hdel", "zpopmin", "pubsub", "incr", "get", "hset", "pexpire", "publish"}},
		"to another, before the next": {plain, toNext(false), []string{older},
			[]string{"hdel", "zpopmin", "pubsub", "hset", "pexpire", "publish",
				"pttl", "pexpire", "time", "zadd", "pexpire"}},
		"to another, before the next with its registration": {
			plain, toNext(false), []string{older, next},
			[]string{"hdel", "zpopmin", "pubsub", "hset", "pexpire", "publish",
				"pttl", "zscore", "pexpire"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startHeld(t)
			attend(t, s)
			register(t, c, test.e, test.waiting...)
			release(t, c, test.e, test.p) // loads the script

			for of, want := range map[string][]string{"scripts": test.commands, "the client": {"evalsha"}} {
				s.Do(t, "DEL", lock, waiters)
				hold(t, s, lock, me, "1", lease)
				register(t, c, test.e, test.waiting...)
				// Within 10 ms of the last registration, the script tries another way first.
				s.Do(t, "PEXPIRE", waiters, "14000")
				monitor := s.Monitor(t)
				release(t, c, test.e, test.p)
				commands := monitor.Commands
				if of == "scripts" {
					commands = monitor.CommandsOfScripts
				}
				require.Equal(t, want, names(commands(t)), of)
			}
		})
	}
}

// A hand-over between processes is a release with a grant, and a request that registers the leaving
// owner again. How much both cost the server bounds how often a hot lock changes hands.
func TestHandOverOfAHotLockCostsTheseCommands(t *testing.T) {
	for name, test := range map[string]struct {
		e     *lua.Exclusive
		fence []string
	}{"plain": {plain, nil}, "fenced": {fenced, []string{"incr", "get"}}} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			attend(t, s)
			owners := []string{older, far + ":2", far + ":3"}
			_, _, holder, err := test.e.Acquire(t.Context(), c, owners[0], waiterLease, "")
			require.NoError(t, err)
			require.Nil(t, holder)
			register(t, c, test.e, owners[1:]...)
			monitor := s.Monitor(t)
			began := time.Now().UnixMilli()
			for turn := range 60 {
				leaving := owners[turn%len(owners)]
				out, err := test.e.Release(t.Context(), c, leaving, 0,
					lua.HandOver{Others: true, Streak: wire.Streak{Count: 1 + turn%2, Began: began}})
				require.NoError(t, err)
				require.Equal(t, lua.Other, out.To)
				register(t, c, test.e, leaving)
			}

			want := slices.Concat([]string{"zpopmin", "pubsub"}, test.fence,
				[]string{"hset", "pexpire", "publish", "pttl", "hrandfield", "pttl", "time", "zadd"})
			all := strings.Join(names(monitor.CommandsOfScripts(t)), " ")
			turns := strings.Split(all, "hdel")[1:]
			require.Contains(t, turns, " "+strings.Join(want, " ")+" ")
			for _, turn := range turns {
				// More than 10 ms after the last registration, the script checks the order of tickets.
				require.LessOrEqual(t, len(strings.Fields(turn)), len(want)+3, turn)
			}
		})
	}
}

// names returns the names of commands.
func names(commands [][]string) (names []string) {
	for _, command := range commands {
		names = append(names, command[0])
	}
	return names
}
