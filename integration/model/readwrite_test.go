//go:build model

package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

const (
	// rwTraces are replayed, of rwDepth states at most.
	rwTraces, rwDepth = 200, 50
	// rwTick is a tick of the model. A step takes less, and rwAge lets time pass.
	rwTick = time.Second
	rwLock = "page"
	// rwWaiterTTL is waiterTTL of lua/readwrite.go.
	rwWaiterTTL = 7 * time.Second
)

// The scripts of a read-write lock reply, write and announce what the model says.
func TestScriptsFollowReadWrite(t *testing.T) {
	t.Parallel()
	traces := Traces(t, "ReadWrite", rwTraces, rwDepth, 1)
	r := newRWReplay(t, 10*rwTick)
	for i, trace := range traces {
		require.NoError(t, r.play(trace), "trace %d", i)
	}
	t.Logf("%d traces: %v", len(traces), r.seen)
	for _, what := range []string{
		"read taken", "read refused", "read steps back", "reenter taken", "reenter gone",
		"write taken", "write refused", "write steps back", "unread released 0", "unread released",
		"unread lowered", "unread gone", "unwrite released 1", "unwrite reading 1", "unwrite gone",
		"unwrite gone 1", "ExecuteLate", "ConfirmLate", "CleanUp", "Renew", "Tick",
	} {
		require.NotZero(t, r.seen[what], "no trace has it: %s", what)
	}
}

// readWriteDifferences has the rules that the scripts keep.
var readWriteDifferences = []string{
	"longestRead", "lateAcquireKeepsLease", "absoluteCount", "lowerKeepsLease", "dropDeadReaders",
	"announceSooner", "readersExclude", "keepReadsOnDowngrade", "announceOnDowngrade",
}

// Without one of them the model does what the scripts do not.
func TestScriptsDoNotFollowCounterexamplesOfReadWrite(t *testing.T) {
	for _, rule := range readWriteDifferences {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			trace := Counterexample(t, "ReadWrite", rule)
			err := newRWReplay(t, 0).play(trace)
			require.Error(t, err)
			t.Log(err)
		})
	}
}

// rwReplay does to a lock in Redis what a trace does to that of the model.
type rwReplay struct {
	t      *testing.T
	client rueidis.Client
	ear    *subscriber
	lock   lua.ReadWrite
	seen   map[string]int // how often what happened
}

func newRWReplay(t *testing.T, bound time.Duration) *rwReplay {
	t.Helper()
	s := redistest.Start(t)
	r := &rwReplay{
		t: t, client: s.Client(t), ear: listen(t, s), seen: map[string]int{},
		lock: lua.ReadWrite{Lock: rwLock, Bound: bound},
	}
	require.NoError(t, r.ear.subscribe(true, lua.RWChannel(rwLock)))
	return r
}

// play plays a trace, and returns where the real lock first differs from the model.
func (r *rwReplay) play(trace []State) error {
	require.NoError(r.t, r.client.Do(r.t.Context(), r.client.B().Flushall().Build()).Error())
	var steps []string
	var before Record
	for _, s := range trace {
		step, want := s["step"].(Record), rwWanted(s["redis"].(Record))
		steps = append(steps, fmt.Sprint(step))
		status, nap, err := r.do(step)
		require.NoError(r.t, err, "after %s", strings.Join(steps, "\n"))
		told, found := r.told(), r.found(step, want)
		r.count(step)
		if rwAtOnce(step, before, s["redis"].(Record)) {
			told = "" // either is right
		}
		before = s["redis"].(Record)
		if model, ok := step["status"]; ok {
			err = errors.Join(err, differ[Value]("status", model, status),
				differ[Value]("announcement", step["told"], told))
			if model == "refused" || model == "steps back" {
				err = errors.Join(err, differ[Value]("nap", step["nap"], nap))
			}
		}
		if !maps.Equal(want, found) {
			err = errors.Join(err, fmt.Errorf("keys: the model has %v, Redis has %v", want, found))
		}
		if err != nil {
			return fmt.Errorf("%w\nafter\n%s", err, strings.Join(steps, "\n"))
		}
	}
	return nil
}

// rwAtOnce reports whether the lock now ends in the very tick in which those who sleep ask anyway,
// so that a millisecond decides whether they are woken.
func rwAtOnce(step, before, after Record) bool {
	q, _ := step["request"].(Record)
	sleeps := func() int64 { return min(rwTicks(lua.MaxNap), before["ttl"].(int64)) }
	return q["do"] == "unread" && step["told"] == "" && after["mode"] == "read" &&
		after["ttl"] == sleeps()
}

// count counts what a step is.
func (r *rwReplay) count(step Record) {
	r.seen[step["do"].(string)]++
	if q, ok := step["request"].(Record); ok {
		what := fmt.Sprintf("%v %v %v", q["do"], step["status"], step["told"])
		r.seen[strings.TrimSpace(what)]++
	}
}

// rwName is the name of an acquisition in Redis. The number of an owner of this library has 19
// digits.
func rwName(owner, name Value) string { return fmt.Sprintf("%v:%019d", owner, name) }

// rwDuration returns how long so many ticks take.
func rwDuration(ticks Value) time.Duration { return time.Duration(ticks.(int64) * int64(rwTick)) }

// rwTicks returns how many ticks have begun after d.
func rwTicks(d time.Duration) int64 { return int64((d + rwTick - 1) / rwTick) }

// do does to Redis what a step does.
func (r *rwReplay) do(step Record) (status string, nap int64, err error) {
	ctx := r.t.Context()
	switch step["do"] {
	case "Tick":
		d := rwDuration(step["ticks"]).Milliseconds()
		return "", 0, rwAge.Exec(ctx, r.client, nil, []string{strconv.FormatInt(d, 10)}).Error()
	case "Renew":
		_, err := lua.Renew(ctx, r.client, rwDuration(step["lease"]), []lua.Held{
			{Lock: rwLock, Owner: rwName(step["who"], step["name"]), Read: true},
		})
		return "", 0, err
	case "Execute", "ExecuteLate", "ConfirmLate", "CleanUp":
		return r.run(step["request"].(Record))
	}
	return "", 0, nil // nothing is executed
}

// run has a request executed.
func (r *rwReplay) run(q Record) (status string, nap int64, err error) {
	ctx, owner, lease := r.t.Context(), rwName(q["who"], q["name"]), rwDuration(q["lease"])
	number, waits := int(q["number"].(int64)), q["waits"] != "0"
	switch q["do"] {
	case "read":
		holder, err := r.lock.AcquireRead(ctx, r.client, owner, number, lease, waits,
			q["waits"] == "2")
		return rwAsked(holder, err)
	case "write":
		holder, err := r.lock.AcquireWrite(ctx, r.client, owner, number, lease, waits)
		return rwAsked(holder, err)
	case "reenter":
		held, err := lua.Reenter(ctx, r.client, lua.Held{Lock: rwLock, Owner: owner, Read: true},
			number, lease)
		return map[bool]string{true: "taken", false: "gone"}[held], 0, err
	case "unread":
		status = "released"
		if number > 0 {
			status = "lowered"
		}
		out, err := r.lock.ReleaseRead(ctx, r.client, owner, number)
		return rwReleased(out, status), 0, err
	case "unwrite":
		out, err := r.lock.ReleaseWrite(ctx, r.client, owner, number, "", 0)
		if status = "released"; out.Reading {
			status = "reading"
		}
		return rwReleased(out, status), 0, err
	}
	return "", 0, fmt.Errorf("no such request: %v", q)
}

// rwReleased returns the model's status of a release: status if it released anything.
func rwReleased(out lua.Released, status string) string {
	if !out.Held {
		return "gone"
	}
	return status
}

// rwAsked returns the model's status of a request, and for how long it says to wait.
func rwAsked(holder *lua.Holder, err error) (string, int64, error) {
	switch {
	case err != nil || holder == nil:
		return "taken", 0, err
	case holder.Next:
		return "steps back", rwTicks(holder.Nap), nil
	}
	return "refused", rwTicks(holder.TTL), nil
}

// told returns what was announced since the last call.
func (r *rwReplay) told() string {
	require.NoError(r.t, r.ear.ping())
	require.NoError(r.t, r.ear.pong())
	var told []string
	for _, m := range r.ear.messages {
		told = append(told, m.text)
	}
	r.ear.messages = nil
	return strings.Join(told, " ")
}

// rwFound lists all keys with what is in them and the ticks that they have left. It makes them last
// for whole ticks, so that the time for which the test runs does not add up. A read hold is a 1.
// The age of the writer that waits is for how long readers have stepped back for it: until it asked
// last, which its key says, and since then.
var rwFound = rueidis.NewLuaScript(`
local tick, waiter_ttl, found = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left, content = redis.call('PTTL', key), nil
  local ticks = left >= 0 and math.ceil(left / tick) or left
  if redis.call('TYPE', key).ok == 'hash' then
    local fields = redis.call('HGETALL', key)
    content = {}
    for i = 1, #fields, 2 do content[#content + 1] = fields[i] .. '=' .. fields[i + 1] end
    table.sort(content)
    content = table.concat(content, ' ')
  else
    content = redis.call('GET', key)
    local kept, owner = string.match(content, '^(%d+) (.*)$')
    if kept then
      local age = math.floor((kept + waiter_ttl - left) / tick)
      content = owner .. ' age=' .. age
      redis.call('SET', key, (age + ticks) * tick - waiter_ttl .. ' ' .. owner, 'KEEPTTL')
    end
  end
  if left >= 0 then redis.call('PEXPIRE', key, ticks * tick) end
  found[#found + 1] = key
  found[#found + 1] = content .. ' for ' .. ticks
end
return found`)

// rwAge makes all keys older, as if so many milliseconds had passed. A key that has less left is
// deleted, as the server would do.
var rwAge = rueidis.NewLuaScript(`
local passed = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= passed then
    redis.call('DEL', key)
  elseif left >= 0 then
    redis.call('PEXPIRE', key, left - passed)
  end
end
return 1`)

// rwTurn is the key of the turn of readers, rwWriter that of the writer for which they step back,
// and rwRow that of readers that wait for a writer.
var (
	rwTurn   = lua.Prefix("holdfast_rwlock_turn", rwLock)
	rwWriter = lua.Prefix("holdfast_rwlock_writer", rwLock)
	rwRow    = lua.Prefix("holdfast_rwlock_reader", rwLock)
)

// found returns all keys that are there, as rwWanted does.
func (r *rwReplay) found(step Record, want map[string]string) map[string]string {
	ctx, tick := r.t.Context(), strconv.FormatInt(rwTick.Milliseconds(), 10)
	ttl := strconv.FormatInt(rwWaiterTTL.Milliseconds(), 10)
	pairs, err := rwFound.Exec(ctx, r.client, nil, []string{tick, ttl}).AsStrSlice()
	require.NoError(r.t, err)
	found := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		found[pairs[i]] = pairs[i+1]
	}
	// The age of a writer that waits goes on, but the model counts up to the end of the pause.
	if text, aged, ok := strings.Cut(found[rwWriter], " age="); ok {
		age, rest, _ := strings.Cut(aged, " ")
		n, err := strconv.ParseInt(age, 10, 64)
		require.NoError(r.t, err)
		found[rwWriter] = fmt.Sprintf("%s age=%d %s", text, min(n, rwTicks(r.lock.Bound)+1), rest)
	}
	// After the last reader a turn lasts for 10 ms more, which may be over by now.
	if _, ok := found[rwTurn]; !ok && want[rwTurn] != "" && step["told"] == "0" {
		require.NoError(r.t, r.client.Do(ctx, r.client.B().Set().Key(rwTurn).Value("1").
			Px(rwTick).Build()).Error())
		found[rwTurn] = want[rwTurn]
	}
	return found
}

// rwWanted returns the keys that the model has.
func rwWanted(redis Record) map[string]string {
	want := map[string]string{}
	if redis["mode"] != "none" {
		fields := []string{}
		for _, owner := range []string{"a", "b", "c"} {
			counts, _ := redis["reads"].(Record)[owner].(Sequence)
			for i, count := range counts {
				if count != int64(0) {
					fields = append(fields, fmt.Sprintf("%s=%v", rwName(owner, i+1), count))
				}
				for _, writer := range redis["writer"].(Set) {
					if w := writer.(Sequence); w[0] == owner && w[1] == int64(i+1) {
						fields = append(fields, lua.WriteField(rwName(w[0], w[1]))+"=1")
					}
				}
			}
		}
		fields = append(fields, fmt.Sprintf("mode=%v", redis["mode"]))
		slices.Sort(fields)
		want[rwLock] = fmt.Sprintf("%s for %v", strings.Join(fields, " "), redis["ttl"])
	}
	for owner, names := range redis["holds"].(Record) {
		for i, holds := range names.(Sequence) {
			for n, ticks := range holds.(Sequence) {
				if ticks != int64(0) {
					key := lua.Suffix(rwLock, rwName(owner, i+1)) + ":rwlock_timeout:"
					want[key+strconv.Itoa(n+1)] = fmt.Sprintf("1 for %v", ticks)
				}
			}
		}
	}
	if w := redis["waiting"].(Record); len(w["key"].(Sequence)) > 0 {
		key := w["key"].(Sequence)
		want[rwWriter] = fmt.Sprintf("%s age=%v for %v",
			lua.WriteField(rwName(key[0], key[1])), w["age"], w["ttl"])
	}
	for key, ticks := range map[string]Value{rwRow: redis["row"], rwTurn: redis["turn"]} {
		if ticks != int64(0) {
			want[key] = fmt.Sprintf("1 for %v", ticks)
		}
	}
	return want
}
