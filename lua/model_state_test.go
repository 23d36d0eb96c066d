//go:build redis

package lua_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/luashim"
)

// An entry is a key in Redis, as found or as a model wants it. Times are milliseconds of the
// server's clock. They point into the model: a model that was right to within some milliseconds is
// then told the exact time.
type entry struct {
	ends   *int64 // when it expires; nil is never
	text   string
	stamps []*int64 // the times that a string begins with
	hash   map[string]string
	list   []string
	scores map[string]*int64
}

// content returns all of an entry but its times.
func (e entry) content() string {
	return fmt.Sprintf("text %q hash %v list %v scored %v expires %t", e.text, e.hash, e.list,
		slices.Sorted(maps.Keys(e.scores)), e.ends != nil)
}

// times returns the times of an entry, by what they are.
func (e entry) times() map[string]*int64 {
	times := map[string]*int64{}
	for owner, score := range e.scores {
		times["score of "+owner] = score
	}
	if e.ends != nil {
		times["end"] = e.ends
	}
	for i, stamp := range e.stamps {
		times["time "+strconv.Itoa(i)+" in the text"] = stamp
	}
	return times
}

// keyspace is everything on a server.
type keyspace map[string]entry

// contents returns a keyspace without its times, which a second run of a command must not change.
func (k keyspace) contents() map[string]string {
	contents := map[string]string{}
	for key, e := range k {
		contents[key] = e.content()
	}
	return contents
}

// instants returns all times in a keyspace.
func (k keyspace) instants() []*int64 {
	var all []*int64
	for _, e := range k {
		all = slices.AppendSeq(all, maps.Values(e.times()))
	}
	return all
}

// adopt asserts that a model wants what was found, times within a tolerance, and makes the model
// want the times that were found.
func (k keyspace) adopt(t *rapid.T, found sighting, tolerance int64, when string) {
	t.Helper()
	require.Equal(t, k.contents(), found.keys.contents(), when)
	for key, want := range k {
		times := found.keys[key].times()
		for what, time := range want.times() {
			require.Contains(t, times, what, "%s: %s", when, key)
			require.InDelta(t, *time-found.at, *times[what]-found.at, float64(tolerance),
				"%s: milliseconds to the %s of %s", when, what, key)
			*time = *times[what]
		}
	}
}

// sighting is a server at one moment.
type sighting struct {
	at   int64
	keys keyspace
}

// endsScript defines a function that returns when a key ends. Redis 6.2 returns only the time left,
// by a clock that runs on during the script, so the millisecond must be the same before and after.
const endsScript = `
local function ends(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then
    return at
  end
  local function now()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local before, left
  repeat
    before, left = now(), redis.call('PTTL', key)
  until now() == before
  return left < 0 and left or before + left
end
`

// snapshotScript reads all there is, at one moment.
const snapshotScript = luashim.Flag + endsScript + `
local time = redis.call('TIME')
local found = {time[1] * 1000 + math.floor(time[2] / 1000)}
local read = {
  string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1},
  zset = {'ZRANGE', 0, -1, 'WITHSCORES'},
}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local command = read[kind]
  local content = redis.call(command[1], key, unpack(command, 2))
  found[#found + 1] = {key, kind, ends(key), type(content) == 'table' and content or {content}}
end
return found`

// stamped matches a text that begins with a time.
var stamped = regexp.MustCompile(`^(\d{13})(?: (.*))?$`)

// instant returns a pointer to a time.
func instant(milliseconds int64) *int64 { return &milliseconds }

// parse reads the reply of snapshotScript.
func parse(t *rapid.T, reply rueidis.RedisResult) sighting {
	values, err := reply.ToArray()
	require.NoError(t, err)
	at, err := values[0].AsInt64()
	require.NoError(t, err)
	s := sighting{at: at, keys: keyspace{}}
	for _, value := range values[1:] {
		found, err := value.ToArray()
		require.NoError(t, err)
		key, err := found[0].ToString()
		require.NoError(t, err)
		kind, err := found[1].ToString()
		require.NoError(t, err)
		ends, err := found[2].AsInt64()
		require.NoError(t, err)
		content, err := found[3].AsStrSlice()
		require.NoError(t, err)
		if strings.HasPrefix(key, "holdfast_lock_waiters:") {
			kind = "hash" // of place -> ticket, which is known exactly
		}
		s.keys[key] = entryOf(t, kind, content)
		if ends >= 0 {
			e := s.keys[key]
			e.ends = &ends
			if kept, owner, found := strings.Cut(e.text, " "); found && key == writerName {
				// Readers had stepped back for kept milliseconds when the key was written.
				since := ends - forgotten.Milliseconds() - number(t, kept)
				e.stamps, e.text = []*int64{&since}, owner
			}
			s.keys[key] = e
		}
	}
	return s
}

func entryOf(t *rapid.T, kind string, content []string) (e entry) {
	switch kind {
	case "string":
		e.text = content[0]
		for {
			parts := stamped.FindStringSubmatch(e.text)
			if parts == nil {
				break
			}
			e.stamps, e.text = append(e.stamps, instant(number(t, parts[1]))), parts[2]
		}
	case "list":
		e.list = content
	case "hash":
		e.hash = map[string]string{}
		for pair := range slices.Chunk(content, 2) {
			e.hash[pair[0]] = pair[1]
		}
	case "zset":
		e.scores = map[string]*int64{}
		for pair := range slices.Chunk(content, 2) {
			e.scores[pair[0]] = instant(number(t, pair[1]))
		}
	}
	return e
}

func number(t *rapid.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
