//go:build redis

package lua_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/identity"
	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
)

// What somebody else has put under the keys of a lock: more entries than any lock has, a count that
// is larger than any, and a long text.
const (
	manyEntries = 40_000
	manyHolds   = 30_000_000
	longText    = 1 << 20
)

// What one script may do: commands, the values that one of them returns, and how many bytes the
// script returns to its client.
const (
	mostCommands = 36_000
	mostValues   = 20_002
	mostReply    = 1 << 20
)

// oddEntries fills a key of each type with a script. The long text comes first or is one of them.
const oddEntries = `
local kind, n, long = ARGV[1], tonumber(ARGV[2]), string.rep('x', tonumber(ARGV[3]))
for i = 1, n, 500 do
  local part = {}
  for j = i, i + 499 do
    if kind == 'ZADD' then part[#part + 1] = ARGV[4] end
    part[#part + 1] = ARGV[5] .. j
    if kind == 'HSET' then part[#part + 1] = ARGV[4] end
  end
  redis.call(kind, KEYS[1], unpack(part))
end
if kind == 'ZADD' then
  redis.call(kind, KEYS[1], ARGV[4], long)
elseif kind == 'HSET' then
  redis.call(kind, KEYS[1], long, ARGV[4])
end`

// plantOdd fills a key: command is HSET, ZADD or RPUSH, and value that of all entries, or
// their score.
func plantOdd(tb testing.TB, s *redistest.Server, key, command, value, entry string) {
	tb.Helper()
	s.Do(tb, "EVAL", oddEntries, "1", key, command, strconv.Itoa(manyEntries),
		strconv.Itoa(longText), value, entry)
}

// A script never works through what somebody else has put under the keys of its lock, nor returns
// it, and never takes a lock because of it. The work is counted, not timed.
func TestWorkOfScriptsIsBoundedWhateverIsUnderTheirKeys(t *testing.T) {
	t.Parallel()
	var known []string
	for _, k := range calls {
		known = append(known, k.script)
	}
	for file := range scripts(t, "*.lua") {
		require.Contains(t, known, file)
	}
	held := map[string]func(*testing.T, *redistest.Server){
		"another hash": func(t *testing.T, s *redistest.Server) {
			plantOdd(t, s, lock, "HSET", "a value", "field:")
		},
		"an odd mode": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "HSET", lock, "mode", "dark", "background", "black")
		},
		"readers": func(t *testing.T, s *redistest.Server) {
			plantOdd(t, s, lock, "HSET", "1", "reader:")
			s.Do(t, "HSET", lock, "mode", "read")
		},
		"holds of another": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "HSET", lock, "mode", "read", me, "1", "reader:1", strconv.Itoa(manyHolds))
			s.Do(t, "SET", holdKey(me, 1), "1")
		},
		"own holds": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "HSET", lock, "mode", "read", me, strconv.Itoa(manyHolds))
		},
		"own holds that are no number": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "HSET", lock, "mode", "read", me, strings.Repeat("many", longText/4))
		},
		"nothing": func(t *testing.T, s *redistest.Server) {},
	}
	foreign := map[string]bool{"another hash": true, "an odd mode": true}
	s := redistest.Start(t, redistest.WithScripts(luashim.Bounded(mostCommands, mostValues)))
	c := s.Client(t)
	long := strings.Repeat("9", longText)
	plantOdd(t, s, "holdfast_lock_budget:{"+lock+"}", "ZADD", "1", "waiter:")
	plantOdd(t, s, waiters, "ZADD", "inf", "waiter:")
	plantOdd(t, s, wire.ClientKey(clientID), "HSET", "text", "field:")
	s.Do(t, "HSET", wire.ClientKey("talker"), "label", long, "host", long)
	talk := netOutput(t, s)
	_, err := identity.Read(t.Context(), c, "talker")
	require.NoError(t, err)
	require.Less(t, netOutput(t, s)-talk, int64(mostReply))
	for _, key := range []string{"holdfast_lock_turn", "redisson_lock_token",
		"holdfast_rwlock_writer", "holdfast_rwlock_reader", "holdfast_rwlock_turn"} {
		s.Do(t, "SET", key+":{"+lock+"}", "1 "+long)
	}
	later := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	for _, scored := range []bool{false, true} {
		if scored {
			plantOdd(t, s, "redisson_lock_timeout:{"+lock+"}", "ZADD", later, "waiter:")
		}
		for lockIs, plantLock := range held {
			s.Do(t, "DEL", lock, wire.QueueKey(lock))
			plantOdd(t, s, wire.QueueKey(lock), "RPUSH", "", "waiter:")
			for _, k := range calls {
				file := k.script
				if scored && !strings.Contains(file, "fair") {
					continue
				}
				if s.DoInt(t, "HLEN", lock) < manyEntries { // else it is there still
					s.Do(t, "DEL", lock)
					plantLock(t, s)
				}
				replied := netOutput(t, s)
				values := k.do(t.Context(), c)
				holder, err := holderOf(values), errorOf(values)
				replied = netOutput(t, s) - replied
				about := file + " of " + lockIs
				require.Less(t, replied, int64(mostReply), about)
				if err != nil {
					require.NotContains(t, err.Error(), luashim.Excessive, about)
					require.NotRegexp(t, "attempt to|'for'|bad argument", err.Error(), about) // of Lua
					require.NotContains(t, err.Error(), "unexpected reply", about)
					require.Less(t, len(err.Error()), 1000, about)
				}
				if holder != nil {
					require.LessOrEqual(t, len(holder.Owner), 256, about)
				} else if foreign[lockIs] && strings.Contains(file, "acquire") {
					lost := outlined(values) == " 1" // the lock of a batch to which a level was to be added
					require.True(t, err != nil || lost, about)
				}
			}
		}
	}
}

// netOutput returns how many bytes the server has sent to all clients.
func netOutput(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	reply := s.Do(t, "INFO", "stats")
	_, after, ok := strings.Cut(fmt.Sprint(reply), "total_net_output_bytes:")
	require.True(t, ok)
	digits, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.ParseInt(digits, 10, 64)
	require.NoError(t, err)
	return n
}
