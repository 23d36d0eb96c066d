package lua_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/identity"
	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// clientID is the id of a client.
const clientID = "8743c9c0-0795-4907-87fd-6c719a6b4586"

var nightly = identity.Identity{Program: "billing", Host: "web-1", PID: 4711,
	Start: time.UnixMilli(1700000000123), Label: "nightly"}

// call is a use of a script. It concerns the lock, or what a client said of itself.
type call struct {
	script string
	states []string // what plant finds it something to do in
	do     func(context.Context, rueidis.CoreClient) []any
	level  bool // it gives back a level, and leaves others
}

// all returns what a function returned, an error last.
func all(values ...any) []any { return values }

// errorOf returns the error among what a call returned.
func errorOf(values []any) error {
	for _, value := range values {
		switch v := value.(type) {
		case error:
			return v
		case []lua.BatchReleased:
			for _, part := range v {
				if part.Err != nil {
					return part.Err
				}
			}
		case []survey.Survey:
			return v[0].Err
		}
	}
	return nil
}

// holderOf returns who was in the way of a call; nil if nobody was.
func holderOf(values []any) *lua.Holder {
	for _, value := range values {
		switch v := value.(type) {
		case *lua.Holder:
			return v
		case lua.Vote:
			return v.Holder
		}
	}
	return nil
}

// longer is the lease of calls, where it must be longer than what is left.
const longer = 3 * lease

// calls has all scripts, those that do several things more than once.
var calls = func() []call {
	type (
		ctx    = context.Context
		client = rueidis.CoreClient
		states = []string
	)
	var table []call
	level := false
	add := func(script string, in states, do func(ctx, client) []any) {
		table = append(table, call{script, in, do, level})
	}
	add("acquire.lua", states{"free", "registered", "mine", "another's"},
		func(x ctx, c client) []any {
			return all(plain.Acquire(x, c, me, longer, plain.Registration(me, longer)))
		})
	add("fenced_acquire.lua", states{"free", "registered", "mine", "another's"},
		func(x ctx, c client) []any {
			return all(fenced.Acquire(x, c, me, longer, fenced.Registration(me, longer)))
		})
	add("batch_acquire.lua", states{"free", "mine", "another's"}, func(x ctx, c client) []any {
		return all(lua.AcquireBatch(x, c, longer, []lua.BatchPart{{Lock: north, Owner: me, Count: 1},
			{Lock: lock, Owner: me, Count: 1}}))
	})
	add("batch_acquire.lua", states{"free", "mine", "another's"}, func(x ctx, c client) []any {
		return all(lua.AcquireBatch(x, c, longer, []lua.BatchPart{{Lock: north, Owner: me, Count: 1},
			{Lock: lock, Owner: me, Count: 2, Nested: true}}))
	})
	add("quorum_acquire.lua", states{"free", "mine", "another's"}, func(x ctx, c client) []any {
		return all(lua.NewBallot(me, longer, lua.Delay{}).Cast(x, c, lock))
	})
	add("quorum_acquire.lua", states{"free"}, func(x ctx, c client) []any {
		return all(lua.NewBallot(me, longer, lua.Delay{For: time.Hour, Epoch: true}).Cast(x, c, lock))
	})
	add("fair_acquire.lua", states{"free", "mine", "queued", "another's", "queued for another's"},
		func(x ctx, c client) []any {
			return all(fair.Acquire(x, c, lua.FairRequest{Owner: me, Count: 1, Lease: longer, Waits: true,
				Window: fairWindow, Budget: time.Hour}))
		})
	add("fair_acquire.lua", states{"free", "another's"}, func(x ctx, c client) []any {
		return all(fair.Acquire(x, c, lua.FairRequest{Owner: me, Count: 1, Lease: longer}))
	})
	add("read_acquire.lua", states{"free", "reads", "another reads", "writes and reads",
		"another writes"}, func(x ctx, c client) []any {
		return all(preferring.AcquireRead(x, c, me, 3, longer, true, false))
	})
	add("write_acquire.lua", states{"free", "writes", "another reads", "another writes"},
		func(x ctx, c client) []any { return all(preferring.AcquireWrite(x, c, me, 2, longer, true)) })
	add("reenter.lua", states{"free", "mine", "another's"}, func(x ctx, c client) []any {
		return all(lua.Reenter(x, c, lua.Held{Lock: lock, Owner: me}, 2, longer))
	})
	add("read_reenter.lua", states{"free", "reads", "another reads", "writes and reads"},
		func(x ctx, c client) []any {
			return all(lua.Reenter(x, c, lua.Held{Lock: lock, Owner: me, Read: true}, 3, longer))
		})
	add("transfer.lua", states{"free", "another's"}, func(x ctx, c client) []any {
		return all(lua.Transfer(x, c, lock, other, me, lease))
	})
	add("renew.lua", states{"free", "mine", "another's"}, func(x ctx, c client) []any {
		return all(lua.Renew(x, c, longer, []lua.Held{{Lock: lock, Owner: me}}))
	})
	add("read_renew.lua", states{"free", "reads", "another reads"}, func(x ctx, c client) []any {
		return all(lua.Renew(x, c, longer, []lua.Held{{Lock: lock, Owner: me, Read: true}}))
	})
	for _, p := range []lua.HandOver{toAll, toNext(true), toNext(false)} {
		add("release.lua", states{"free", "mine", "waited for", "another's"},
			func(x ctx, c client) []any { return all(plain.Release(x, c, me, 0, p)) })
	}
	for count, in := range []states{{"free", "mine", "another's"},
		{"free", "mine twice", "another's"}} {
		level = count > 0
		add("release_only.lua", in,
			func(x ctx, c client) []any { return all(plain.Release(x, c, me, count, lua.HandOver{})) })
		add("batch_release.lua", in, func(x ctx, c client) []any {
			return all(lua.ReleaseBatch(x, c, wire.Classic, []lua.BatchPart{releaseOf(lock, count)}))
		})
		add("fair_release.lua", append(in, "queued for another's"),
			func(x ctx, c client) []any { return all(fair.Release(x, c, count, me)) })
	}
	level = false
	add("fair_release.lua", states{"queued"}, func(x ctx, c client) []any {
		return all(fair.Release(x, c, 0, other, me))
	})
	for count := range 2 {
		level = count > 0
		add("read_release.lua", states{"free", "reads", "another reads", "writes and reads"},
			func(x ctx, c client) []any { return all(preferring.ReleaseRead(x, c, me, count)) })
		add("write_release.lua", states{"free", "writes", "another writes", "writes and reads"},
			func(x ctx, c client) []any { return all(preferring.ReleaseWrite(x, c, me, count, "", 0)) })
	}
	level = false
	add("write_release.lua", states{"writes"}, func(x ctx, c client) []any {
		return all(preferring.ReleaseWrite(x, c, me, 0, wire.WriteField(next), longer))
	})
	for kind, in := range map[lua.Keeping]states{
		{}:                {"free", "mine twice", "another's"},
		{Fair: true}:      {"free", "mine", "queued", "queued for another's"},
		{ReadWrite: true}: {"free", "writes", "another writes"},
	} {
		add("keep.lua", in, func(x ctx, c client) []any { return all(lua.Keep(x, c, keeping(kind))) })
	}
	add("force_unlock.lua", states{"free", "mine"},
		func(x ctx, c client) []any { return all(plain.ForceUnlock(x, c, wire.Classic)) })
	add("fair_force_unlock.lua", states{"free", "mine", "queued", "queued for another's"},
		func(x ctx, c client) []any { return all(fair.ForceUnlock(x, c)) })
	for _, mode := range []string{"read", "write"} {
		add("readwrite_force_unlock.lua", states{"free", "reads", "writes", "writes and reads"},
			func(x ctx, c client) []any { return all(preferring.ForceUnlock(x, c, mode)) })
	}
	add("inspect.lua", states{"mine"},
		func(x ctx, c client) []any { return all(lua.Inspect(x, c, lock)) })
	add("fair_inspect.lua", states{"queued for another's"},
		func(x ctx, c client) []any { return all(lua.InspectFair(x, c, lock)) })
	add("fenced_inspect.lua", states{"mine"},
		func(x ctx, c client) []any { return all(lua.InspectFenced(x, c, lock)) })
	add("survey.lua", states{"waited for"},
		func(x ctx, c client) []any { return all(survey.NewSurveyor(c, false).Survey(x, lock)) })
	add("once_begin.lua", states{"free", "mine", "mine after another run", "mine with a result",
		"another's"}, func(x ctx, c client) []any {
		return all(lua.BeginOnce(x, c, lock, me, "run", lease))
	})
	add("once_store.lua", states{"free", "mine", "mine after another run", "mine with a result",
		"another's"}, func(x ctx, c client) []any {
		return all(lua.StoreOnce(x, c, lock, me, stored("run"), lease))
	})
	add("identify.lua", states{"free"},
		func(x ctx, c client) []any { return all(identity.Note(x, c, clientID, nightly, lease)) })
	add("identity.lua", states{"free"},
		func(x ctx, c client) []any { return all(identity.Read(x, c, clientID)) })
	return table
}()

// keeping completes a kind of lock for [lua.Keep].
func keeping(k lua.Keeping) lua.Keeping {
	k.Held, k.By, k.For = lua.Held{Lock: lock, Owner: me}, next, lease/2
	if k.ReadWrite {
		k.Owner, k.By = wire.WriteField(me), wire.WriteField(next)
	}
	return k
}

// plant writes a state of the lock with plain commands. It deletes all else.
func plant(tb testing.TB, s *redistest.Server, state string) {
	tb.Helper()
	reads := func(owner string, n int) {
		s.Do(tb, "HSET", lock, "mode", "read", owner, strconv.Itoa(n))
		for i := range n {
			s.Do(tb, "SET", holdKey(owner, i+1), "1", "PX", ms(time.Duration(i+1)*lease))
		}
	}
	queue := func() {
		ends := time.Now().Add(time.Hour).UnixMilli()
		for i, owner := range []string{me, first} {
			s.Do(tb, "RPUSH", fairQueue, owner)
			s.Do(tb, "ZADD", fairScores, decimal(ends+int64(i+1)*fairWindow.Milliseconds()), owner)
		}
		s.Do(tb, "ZADD", fairBudgets, decimal(ends), me)
	}
	s.Do(tb, "FLUSHALL")
	switch state {
	case "free":
		return
	case "mine":
		s.Do(tb, "HSET", lock, me, "1")
	case "mine after another run":
		s.Do(tb, "HSET", lock, me, "1")
		s.Do(tb, "SET", onceKey, "41 another", "PX", ms(lease))
	case "mine with a result":
		s.Do(tb, "HSET", lock, me, "1")
		s.Do(tb, "SET", onceKey, "41 another - its result", "PX", ms(lease))
	case "mine twice":
		s.Do(tb, "HSET", lock, me, "2")
	case "another's":
		s.Do(tb, "HSET", lock, other, "1")
	case "registered":
		s.Do(tb, "ZADD", waiters, "1", plain.Registration(me, longer), "2",
			fenced.Registration(me, longer))
		s.Do(tb, "PEXPIRE", waiters, ms(lease))
	case "waited for":
		s.Do(tb, "HSET", lock, me, "1")
		s.Do(tb, "ZADD", waiters, "1", plain.Registration(older, waiterLease))
		s.Do(tb, "PEXPIRE", waiters, ms(lease))
	case "queued":
		queue()
	case "queued for another's":
		s.Do(tb, "HSET", lock, other, "1")
		queue()
	case "reads":
		reads(me, 2)
		s.Do(tb, "PEXPIRE", lock, ms(2*lease))
		return
	case "another reads":
		reads(other, 2)
		s.Do(tb, "PEXPIRE", lock, ms(2*lease))
		return
	case "writes":
		s.Do(tb, "HSET", lock, "mode", "write", wire.WriteField(me), "2")
	case "another writes":
		s.Do(tb, "HSET", lock, "mode", "write", wire.WriteField(other), "2")
	case "writes and reads":
		reads(me, 2)
		s.Do(tb, "HSET", lock, "mode", "write", wire.WriteField(me), "2")
		s.Do(tb, "PEXPIRE", lock, ms(2*lease))
		return
	default:
		require.Fail(tb, state)
	}
	s.Do(tb, "PEXPIRE", lock, ms(lease))
}

// outlined returns what a call returned, without times and errors.
func outlined(values []any) string {
	text := ""
	for _, value := range values {
		switch v := value.(type) {
		case nil, error, lua.State, identity.Identity, []survey.Survey:
		case *lua.Holder:
			if v != nil {
				text += fmt.Sprint(" holder ", v.Owner, v.Next, v.TTL < 0)
			}
		case lua.Vote:
			text += fmt.Sprint(" vote ", v.Granted, v.Already, v.Holder != nil, v.Emptied)
		case []lua.BatchReleased:
			for _, part := range v {
				text += outlined(all(part.Released))
			}
		case lua.OnceRecord:
			v.Token = min(v.Token, 1000) // or a time
			text += fmt.Sprintf(" %+v", v)
		case lua.Released:
			v.Refusal, v.Began, v.Ticket = "", min(v.Began, 1), min(v.Ticket, 1)
			text += fmt.Sprintf(" %+v", v)
		case int64:
			text += fmt.Sprint(" ", min(v, 1000)) // or a ticket
		default:
			text += fmt.Sprintf(" %+v", v)
		}
	}
	return text
}

// everythingScript reads all there is. Of times it tells tens of seconds only.
const everythingScript = luashim.Flag + `
local read = {string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1},
  zset = {'ZRANGE', 0, -1, 'WITHSCORES'}}
local found = {}
for i, key in ipairs(redis.call('KEYS', '*')) do
  local command = read[redis.call('TYPE', key).ok]
  local content = redis.call(command[1], key, unpack(command, 2))
  if command[1] == 'HGETALL' then
    local pairs_of = {}
    for f = 1, #content, 2 do pairs_of[#pairs_of + 1] = content[f] .. '=' .. content[f + 1] end
    table.sort(pairs_of)
    content = pairs_of
  end
  content = type(content) == 'table' and table.concat(content, ' ') or content
  content = string.gsub(content, '%f[%d]%d%d%d%d%d%d%d%d%d%d%d%d%d%d?%d?%d?%f[%D]', 'time')
  found[i] = key .. ' ' .. math.floor((redis.call('PTTL', key) + 6000) / 10000) .. ': ' .. content
end
table.sort(found)
return found`

func everything(tb testing.TB, s *redistest.Server) []string {
	tb.Helper()
	return s.DoStrings(tb, "EVAL", everythingScript, "0")
}

// ofLocks returns what everything has of locks themselves, and of other keys that only a call that
// succeeds writes.
func ofLocks(found []string) []string {
	return slices.DeleteFunc(slices.Clone(found), func(entry string) bool {
		return !regexp.MustCompile(`^(order:42|account:1|.*:rwlock_timeout:\d|holdfast_client|` +
			`holdfast_once|` + wire.EpochKey + `)`).MatchString(entry)
	})
}

// use is what became of a call.
type use struct {
	values        []any
	before, after []string
}

// use does the call in a state, while the server is in trouble from begin to end.
func (k call) use(t *testing.T, s *redistest.Server, c rueidis.CoreClient, state string,
	trouble ...string,
) use {
	t.Helper()
	plant(t, s, state)
	return k.useAsItIs(t, s, c, trouble...)
}

// useAsItIs does the call in the state that the test has made.
func (k call) useAsItIs(t *testing.T, s *redistest.Server, c rueidis.CoreClient, trouble ...string,
) use {
	t.Helper()
	u := use{before: everything(t, s)}
	if len(trouble) > 0 {
		s.Do(t, strings.Fields(trouble[0])...)
	}
	u.values = k.do(t.Context(), c)
	if len(trouble) > 0 {
		s.Do(t, strings.Fields(trouble[1])...)
	}
	u.after = everything(t, s)
	return u
}
