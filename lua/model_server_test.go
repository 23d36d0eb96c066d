//go:build redis

package lua_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
)

// world is the server on which random programs run, one after the other. It is also a client, which
// takes a snapshot of the server right before and right after each command, so that nothing but the
// command lies between.
type world struct {
	rueidis.Client
	snapshotSHA string // the SHA-1 of snapshotScript
	aging       string // the SHA-1 of ageScript
	snapshots   []rueidis.RedisResult
	monitor     *bufio.Reader
	markers     int
	told        []message // what scripts have published since the step began
	ears        map[string]*ear
}

// ear is a connection that listens. It counts as a waiter.
type ear struct {
	conn  net.Conn
	heard *bufio.Reader
}

// message is a published message.
type message struct{ verb, channel, text string }

func newWorld(t *testing.T) *world {
	t.Helper()
	s := redistest.Start(t)
	w := &world{
		Client: s.Client(t, func(o *rueidis.ClientOption) { o.PipelineMultiplex = -1 }),
	} // one connection keeps one order
	scripts := map[string]*string{snapshotScript: &w.snapshotSHA, ageScript: &w.aging}
	for script, sha := range scripts {
		var err error
		*sha, err = w.Client.Do(t.Context(), w.B().ScriptLoad().Script(script).Build()).ToString()
		require.NoError(t, err)
	}
	monitor := dial(t, s)
	_, err := fmt.Fprint(monitor, array("MONITOR"))
	require.NoError(t, err)
	w.monitor = bufio.NewReader(monitor)
	_, err = w.monitor.ReadString('\n')
	require.NoError(t, err)
	w.ears = map[string]*ear{}
	for _, who := range []string{somebody, anna, bert, cleo, java} {
		conn := dial(t, s)
		w.ears[who] = &ear{conn, bufio.NewReader(conn)}
	}
	return w
}

func dial(t *testing.T, s *redistest.Server) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), eventually)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Minute))) // more than a test may take
	return conn
}

// Do executes one command, between two snapshots.
func (w *world) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	replies := w.batch(ctx, command)
	return replies[0]
}

// batch executes commands between two snapshots, without those of others in between.
func (w *world) batch(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	w.markers++
	marker := "marker-" + strconv.Itoa(w.markers)
	all := append([]rueidis.Completed{w.snapshot()}, commands...)
	all = append(all, w.snapshot(), w.B().Echo().Message(marker).Build())
	replies := w.DoMulti(ctx, all...)
	end := len(commands) + 1
	w.snapshots = append(w.snapshots, replies[0], replies[end])
	w.listen(marker)
	return replies[1:end]
}

func (w *world) snapshot() rueidis.Completed {
	return w.B().Evalsha().Sha1(w.snapshotSHA).Numkeys(0).Build()
}

// listen reads what scripts publish, up to the marker. A subscriber would count as a waiter.
func (w *world) listen(marker string) {
	for {
		line, err := w.monitor.ReadString('\n')
		if err != nil {
			panic(err) // the server is gone
		}
		if strings.Contains(line, `"`+marker+`"`) {
			return
		}
		_, command, _ := strings.Cut(line, ` lua] "`)
		if parts := strings.Split(strings.TrimSpace(command), `" "`); len(parts) == 3 &&
			strings.Contains(parts[0], "PUBLISH") {
			w.told = append(w.told, message{parts[0], parts[1], timeless(strings.TrimSuffix(parts[2], `"`))})
		}
	}
}

// somebody listens where it does not matter which client does.
const somebody = "somebody"

// soon is a message with the number of milliseconds after which to ask again.
const soon = "soon"

// timeless returns a message without its times, which are those of the step: when the lock was
// first handed over, or when to ask again.
func timeless(text string) string {
	if left, err := strconv.Atoi(text); err == nil && left > 1 {
		return soon
	}
	if grant, ok := wire.ParseGrant(text); ok && grant.Streak.Began > 1e12 &&
		grant.Streak.Began != ever {
		return strings.Replace(text, " "+strconv.FormatInt(grant.Streak.Began, 10)+" ", " 0 ", 1)
	}
	return text
}

// subscribe has a client listen on a channel from now on, or stop.
func (w *world) subscribe(t require.TestingT, verb, channel string) {
	w.ears[somebody].subscribe(t, verb, channel)
}

func (e *ear) subscribe(t require.TestingT, verb, channel string) {
	_, err := fmt.Fprint(e.conn, array(verb, channel))
	require.NoError(t, err)
	for {
		push := make([]string, 6) // *3, and each of the first two with its length
		for i := range push[:5] {
			push[i], err = e.heard.ReadString('\n')
			require.NoError(t, err)
		}
		last, err := e.heard.ReadString('\n')
		require.NoError(t, err)
		if strings.HasPrefix(last, ":") {
			return
		}
		_, err = e.heard.ReadString('\n') // the text of a message
		require.NoError(t, err)
	}
}

// ageScript makes everything on the server older, as if so many milliseconds had passed.
const ageScript = luashim.Flag + endsScript + `
local passed = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if string.find(key, '^holdfast_lock_waiters:') then
    -- Tickets are numbers to tell places apart: how long ago they were taken does not matter.
  elseif kind == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, -passed, member)
    end
  elseif kind == 'string' then
    local text = redis.call('GET', key)
    local older = string.gsub(text, '%f[%d]%d%d%d%d%d%d%d%d%d%d%d%d%d%f[%D]', function(time)
      return string.format('%.0f', time - passed)
    end)
    if older ~= text then
      redis.call('SET', key, older, 'KEEPTTL')
    end
  end
  local at = ends(key)
  if at ~= -1 then
    redis.call('PEXPIREAT', key, at - passed)
  end
end`

// An entry is a key in Redis, as found or as a model wants it. Times are milliseconds of the
// server's clock. They point into the model: a model that was right to within some milliseconds is
// then told the exact time.
type entry struct {
	ends   *int64 // when it expires; nil is never
	early  int64  // by how much it may expire early
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
			require.InDelta(t, *time-found.at, *times[what]-found.at, float64(tolerance+want.early),
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
