//go:build redis

package lua_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/lua"
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
			w.told = append(
				w.told,
				message{parts[0], parts[1], timeless(strings.TrimSuffix(parts[2], `"`))},
			)
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
	if grant, ok := lua.ParseGrant(text); ok && grant.Streak.Began > 1e12 &&
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
