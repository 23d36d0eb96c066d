//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"holdfast/internal/redistest"
)

// fill adds keys of all types beside locks; the last hundredth are of collections. KEYS[1] is a
// prefix, ARGV[1] and ARGV[2] the numbers of the first and the last key.
const fill = `
for i = ARGV[1], ARGV[2] do
  local key, kind = KEYS[1] .. i, i % 1000
  if kind == 0 then redis.call('HSET', key, 'name', i, 'colour', 'green')
  elseif kind == 1 then redis.call('RPUSH', key, i)
  elseif kind == 2 then redis.call('SADD', key, i)
  elseif kind == 3 then redis.call('ZADD', key, i, i)
  elseif kind == 4 then redis.call('XADD', key, '*', 'i', i)
  elseif kind < 100 then redis.call('HSET', key, 'user', i)
  else redis.call('SET', key, i) end
end`

// fillHash adds fields to one hash, half of which an owner could have as well.
const fillHash = `
for i = ARGV[1], ARGV[2] do
  redis.call('HSET', KEYS[1], 'field:' .. i, i)
end`

// fillLocks takes locks. Each has an owner and lease of its own; every tenth is fair, and has a
// queue of ten; every hundredth is free.
const fillLocks = `
for i = 1, ARGV[1] do
  local name, owner = KEYS[1] .. i, string.format('%08x-0795-4907-87fd-6c719a6b4586:', i)
  if i % 100 ~= 0 then
    redis.call('HSET', name, owner .. 1, 1)
    redis.call('PEXPIRE', name, 3600000)
  end
  if i % 10 == 0 then
    for j = 2, 11 do
      redis.call('RPUSH', 'redisson_lock_queue:{' .. name .. '}', owner .. j)
      redis.call('ZADD', 'redisson_lock_timeout:{' .. name .. '}', 1e13, owner .. j)
    end
  end
end`

// TestListAmongManyKeysIsQuickAndSmall lists 1,000 locks among 30,000 other keys. As root and with
// HOLDFAST_LS_KEYS=1000000 it is as strict as the promise: 10 s, 50 MB, and no event of 5 ms.
func TestListAmongManyKeysIsQuickAndSmall(t *testing.T) {
	const locks = 1000
	keys, strict := 30_000, false
	if text := os.Getenv("HOLDFAST_LS_KEYS"); text != "" {
		var err error
		keys, err = strconv.Atoi(text)
		require.NoError(t, err)
		strict = true
	}
	s := redistest.Start(t)
	const step = 10_000
	for i := 0; i < keys; i += step {
		first, last := strconv.Itoa(i+1), strconv.Itoa(min(i+step, keys))
		s.Do(t, "EVAL", fill, "1", "other:", first, last)
		s.Do(t, "EVAL", fillHash, "1", "large", first, last)
	}
	prefix := "lock:" + strings.Repeat("long", 30) + ":"
	s.Do(t, "EVAL", fillLocks, "1", prefix, strconv.Itoa(locks))
	require.EqualValues(t, keys, s.DoInt(t, "HLEN", "large"))
	if strict {
		preferProcessor(t, s)
	}

	s.Do(t, "CONFIG", "SET", "latency-monitor-threshold", "1")
	s.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", "1000")
	s.Do(t, "LATENCY", "RESET")
	s.Do(t, "SLOWLOG", "RESET")
	s.ResetStats(t)
	cmd := exec.CommandContext(t.Context(), binary, "ls", "--redis", s.Addr())
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	began := time.Now()
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(output)
	require.True(t, lines.Scan())
	took := time.Since(began)
	// It has all locks, and is still there: the pipe has no room for that many lines. The usage that
	// the system reports at the end would be that of this process, if it is larger.
	peak := peakMemory(t, cmd.Process.Pid)
	found := 0
	for lines.Scan() {
		found++
	}
	require.NoError(t, cmd.Wait())
	require.Equal(t, locks, found)

	slowest := 0
	for _, event := range s.Do(t, "LATENCY", "LATEST").([]any) {
		slowest = max(slowest, int(event.([]any)[3].(int64)))
	}
	slowlog, command := 0, ""
	for _, entry := range s.Do(t, "SLOWLOG", "GET", "1000").([]any) {
		if took := int(entry.([]any)[2].(int64)); took > slowlog {
			slowlog, command = took, fmt.Sprint(entry.([]any)[3])
		}
	}
	t.Logf("%d locks among %d keys: %v, peak %d kB, slowest event %d ms, slowest command %d µs: "+
		"%.80s", found, keys, took.Round(time.Millisecond), peak, slowest, slowlog, command)
	require.Less(t, took, 100*time.Second)
	require.Less(t, peak, 50_000)
	if strict {
		require.Less(t, took, 10*time.Second)
		require.LessOrEqual(t, slowest, 5)
	}
	// Nothing was read as a whole but locks, and who has them.
	stats := s.CommandStats(t)
	require.Zero(t, stats["keys"])
	require.Zero(t, stats["hgetall"])
}

// preferProcessor gives a server the processor whenever it wants it, so that time in which other
// processes have it does not count as its own. That takes the rights of root.
func preferProcessor(t *testing.T, s *redistest.Server) {
	t.Helper()
	id := regexp.MustCompile(`process_id:(\d+)`).FindStringSubmatch(s.DoString(t, "INFO", "server"))
	pid, err := strconv.Atoi(id[1])
	require.NoError(t, err)
	require.NoError(t, unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
		Policy: unix.SCHED_FIFO, Priority: 1}, 0))
}

// peakMemory returns the most kB that a process has used at once.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(t, found, "%s", text)
	kB, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kB
}
