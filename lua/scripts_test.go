package lua_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
	"holdfast/internal/luashim"
)

func TestScriptThatTheServerForgotIsSentOnce(t *testing.T) {
	s, c := start(t)
	for _, k := range calls {
		if k.script == "survey.lua" {
			continue // it asks for several locks at once, and for each again
		}
		plant(t, s, k.states[0])
		s.Do(t, "SCRIPT", "FLUSH")
		s.ResetStats(t)
		for range 2 {
			require.NoError(t, errorOf(k.do(t.Context(), c)))
		}
		stats := s.CommandStats(t)
		require.Equal(t, 2, stats["evalsha"], k.script)
		require.Equal(t, 1, stats["eval"], k.script)
	}
}

func TestFractionsOfAMillisecondDoNotExtendALease(t *testing.T) {
	s, c := start(t)
	monitor := s.Monitor(t)
	_, err := lockPlain(t.Context(), c, 1500*time.Millisecond+999*time.Microsecond)
	require.NoError(t, err)
	for _, command := range monitor.Commands(t) {
		require.Equal(t, "1500", command[len(command)-1])
	}
}

var commandCall = regexp.MustCompile(`(?:redis\.p?call\(|attempt\(|\bread\(\S+, )([^,)]+)`)

// TestScriptsUseOnlyCommandsOfRedis62 lists the commands that scripts may call. A command that is
// added must exist in 6.2, with the options that the script gives it.
func TestScriptsUseOnlyCommandsOfRedis62(t *testing.T) {
	// PUBSUB has SHARDNUMSUB for sharded channels only, which 6.2 does not have either. The last three
	// are that of an announcement, that given to read in survey.lua, and that given to attempt.
	known := strings.Fields(`'DEL' 'EXISTS' 'GET' 'HDEL' 'HEXISTS' 'HGET' 'HLEN' 'HRANDFIELD' 'HSET'
		'INCR' 'INFO' 'LASTSAVE' 'LINDEX' 'LLEN' 'LPOP' 'LRANGE' 'LREM' 'PEXPIRE' 'PTTL' 'RPUSH' 'SET'
		'TIME' 'ZADD' 'ZCARD' 'ZPOPMIN' 'ZRANGE' 'ZREM' 'ZSCORE' 'PUBLISH' 'PUBSUB' verb command ...`)
	// Lua features of Redis 7: script flags, the ACL check, the other name of redis, options of
	// PEXPIRE. ZADD has had NX since 3.0.
	newer := []string{"#!lua", "acl_check_cmd", "server.", "'NX'", "'XX'", "'GT'", "'LT'"}
	for file, source := range scripts(t, "*.lua", "common/*.lua") {
		calls := commandCall.FindAllStringSubmatch(source, -1)
		for _, call := range calls {
			require.True(t, slices.Contains(known, call[1]), "%s calls %s", file, call[1])
		}
		old := strings.ReplaceAll(source, "'ZADD', waiters, 'NX'", "")
		for _, word := range newer {
			require.NotContains(t, old, word, file)
		}
	}
}

// headerOf returns the comments that a file begins with.
var headerOf = regexp.MustCompile(`\A(?:--.*\n)*`)

func TestScriptsSayWhatTheyDo(t *testing.T) {
	all := scripts(t, "*.lua", "common/*.lua")
	for file := range scripts(t, "*.lua") {
		header := headerOf.FindString(all[file])
		require.True(t, strings.HasPrefix(all[file], header+"\n"), file)
		require.Regexp(t, `\A-- [A-Z][^\n]+[.,a-z]\n`, strings.TrimPrefix(header, luashim.Flag),
			"%s: purpose", file)
		require.Regexp(t, `(?m)^-- KEYS\[`, header, file)
		require.Regexp(t, `(?m)^-- Returns +\S`, header, file)
		require.Regexp(t, `(?m)^-- Retry +safe`, header, file)
		references := regexp.MustCompile(` as in (common/\w+\.lua)\n`)
		for _, named := range references.FindAllStringSubmatch(header, -1) {
			header += headerOf.FindString(all[named[1]])
		}
		arguments := regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`)
		for _, argument := range arguments.FindAllString(all[file], -1) {
			require.Contains(t, header, argument, file)
		}
	}
	for file := range scripts(t, "common/*.lua") {
		arguments := regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`).FindAllString(all[file], -1)
		for _, argument := range arguments {
			require.Contains(t, headerOf.FindString(all[file]), "-- "+argument, file)
		}
	}
}

// Dragonfly must be told of scripts that use keys which their callers cannot declare: the read
// holds of other owners, or those of its own that a caller does not know of. TestMain has a test
// fail if another script uses such a key.
func TestOnlyScriptsOfReadHoldsHaveTheFlagForUndeclaredKeys(t *testing.T) {
	var flagged []string
	for file, source := range scripts(t, "*.lua") {
		if strings.HasPrefix(source, luashim.Flag) {
			flagged = append(flagged, file)
		}
		require.NotContains(t, strings.TrimPrefix(source, luashim.Flag), "--!", file)
	}
	require.ElementsMatch(t, flagged, []string{"read_acquire.lua", "read_reenter.lua",
		"read_release.lua", "read_renew.lua", "readwrite_force_unlock.lua", "write_release.lua"})
}

// Creating a function costs the server as much as a command, so functions wait for the branch that
// calls them.
func TestTakingAndReleasingAPlainLockCreatesNoFunction(t *testing.T) {
	for _, file := range []string{"acquire.lua", "release_only.lua", "release.lua"} {
		source := scripts(t, file)[file]
		require.Contains(t, source, "  -- Needs ", file)
		require.NotRegexp(t, `(?m)^-- Needs |^(?:local )?function `, source, file)
	}
}

// scripts returns the .lua files of the package that match.
func scripts(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			sources[file] = string(source)
		}
	}
	return sources
}

// globals has the globals that scripts use, with their members. Both Lua 5.1, which Redis and
// Valkey have, and Lua 5.4, which Dragonfly has, know them.
var globals = map[string][]string{
	"ARGV": nil, "KEYS": nil,
	"ipairs": nil, "next": nil, "pairs": nil, "pcall": nil, "tonumber": nil, "type": nil,
	"math":   {"floor", "huge", "max", "min"},
	"redis":  {"call", "pcall"},
	"string": {"find", "format", "match", "sub"},
	"table":  {"concat", "unpack"},
}

var (
	notCode = regexp.MustCompile(`--.*|'[^']*'`)
	// A member with its table, or another word.
	word        = regexp.MustCompile(`(?:\b(\w+)\.)?\b([A-Za-z_]\w*)\b`)
	definitions = []*regexp.Regexp{
		regexp.MustCompile(`\bfor ([\w, ]+) (?:in|=)`),
		regexp.MustCompile(`\blocal ([\w, ]+)`),
		regexp.MustCompile(`\bfunction\b[^(]*\(([\w, ]*)`),
	}
	keywords = strings.Fields("and break do else elseif end false for function if in local nil not " +
		"or repeat return then true until while")
)

func TestScriptsUseOnlyGlobalsThatEveryLuaHas(t *testing.T) {
	for file, source := range fragments.Read(os.DirFS(".")) {
		// The one place that may name what only Lua 5.1 has, because it looks for the other first.
		source = strings.ReplaceAll(source, "= table.unpack or unpack\n", "= table.unpack\n")
		code := notCode.ReplaceAllString(source, "''")
		defined := slices.Clone(keywords)
		for _, definition := range definitions {
			for _, found := range definition.FindAllStringSubmatch(code, -1) {
				for name := range strings.SplitSeq(found[1], ", ") {
					defined = append(defined, strings.TrimPrefix(strings.TrimSpace(name), "function "))
				}
			}
		}
		defined = append(defined, "err") // a field of a table that a script makes
		for _, found := range word.FindAllStringSubmatch(code, -1) {
			of, name := found[1], found[2]
			if members, ofGlobal := globals[of]; ofGlobal {
				require.Contains(t, members, name, "%s: %s", file, found[0])
			} else if of == "" && !slices.Contains(defined, name) {
				require.Contains(t, slices.Collect(maps.Keys(globals)), name, file)
			}
		}
	}
}

// Lua 5.4 writes "2.0" for the result of a division, where Lua 5.1 writes "2". A server refuses
// that as a number of milliseconds, and it makes another key.
func TestScriptsComputeWithWholeNumbers(t *testing.T) {
	for file, source := range scripts(t, "*.lua", "common/*.lua") {
		for line := range strings.Lines(source) {
			code := notCode.ReplaceAllString(line, "''")
			code = regexp.MustCompile(`math\.floor\([^/]* / \d+\)`).ReplaceAllString(code, "")
			require.NotRegexp(t, `[/^]|\d\.|\.\d|\de\d`, code, "%s: %s", file, line)
		}
	}
}

// Every process that imports this package would wait until all scripts are assembled, so a script
// is assembled when it is first used.
func TestImportAssemblesNoScript(t *testing.T) {
	process := exec.Command(os.Args[0], "-test.run=^$")
	process.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := process.CombinedOutput()
	require.NoError(t, err)
	found := regexp.MustCompile(`init \S+/lua .* (\d+) allocs`).FindSubmatch(trace)
	require.NotNil(t, found, "%s", trace)
	objects, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	require.Less(t, objects, 400) // 2,200 with all scripts
}
