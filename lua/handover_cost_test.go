//go:build redis

package lua_test

import (
	"testing"

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
				"pexpire", "time", "zadd", "pexpire"}},
		"to another, before the next with its registration": {
			plain, toNext(false), []string{older, next},
			[]string{"hdel", "zpopmin", "pubsub", "hset", "pexpire", "publish",
				"pexpire", "zscore"}},
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

// names returns the names of commands.
func names(commands [][]string) (names []string) {
	for _, command := range commands {
		names = append(names, command[0])
	}
	return names
}
