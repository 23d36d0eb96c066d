package lua_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
)

var commandCall = regexp.MustCompile(`(?:redis\.p?call\(|attempt\(|\bread\(\S+, )([^,)]+)`)

// TestScriptsUseOnlyCommandsOfRedis62 lists the commands that scripts may call. A command that is
// added must exist in 6.2, with the options that the script gives it.
func TestScriptsUseOnlyCommandsOfRedis62(t *testing.T) {
	known := []string{
		"'DEL'",
		"'EXISTS'",
		"'GET'",
		"'HDEL'",
		"'HEXISTS'",
		"'HGET'",
		"'HLEN'",
		"'HRANDFIELD'",
		"'HSET'",
		"'INCR'",
		"'INFO'",
		"'LINDEX'",
		"'LLEN'",
		"'LPOP'",
		"'LRANGE'",
		"'LREM'",
		"'PEXPIRE'",
		"'PTTL'",
		"'RPUSH'",
		"'SET'",
		"'TIME'",
		"'ZADD'",
		"'ZCARD'",
		"'ZPOPMIN'",
		"'ZRANGE'",
		"'ZREM'",
		"'ZSCORE'",
		"'PUBLISH'",
		"'PUBSUB'", // with SHARDNUMSUB for sharded channels only, which 6.2 does not have either
		"verb",     // of an announcement
		"command",  // given to read, in survey.lua
		"...",
	} // the command given to attempt
	// Lua features of Redis 7: script flags, the ACL check, the other name of redis, options of
	// PEXPIRE.
	newer := []string{"#!lua", "acl_check_cmd", "server.", "'NX'", "'XX'", "'GT'", "'LT'"}
	for file, source := range scripts(t, "*.lua", "common/*.lua") {
		calls := commandCall.FindAllStringSubmatch(source, -1)
		for _, call := range calls {
			require.True(t, slices.Contains(known, call[1]), "%s calls %s", file, call[1])
		}
		for _, word := range newer {
			require.NotContains(t, source, word, file)
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

func TestScriptsHaveLinesOfAtMost100Columns(t *testing.T) {
	for file, source := range scripts(t, "*.lua", "common/*.lua") {
		for line := range strings.Lines(source) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, "%s: %s", file, line)
		}
	}
}

// A function that a file calls without declaring its fragment is there only by chance. One that is
// never called costs the server time.
func TestScriptsDeclareTheFragmentsThatTheyCall(t *testing.T) {
	all := scripts(t, "*.lua", "common/*.lua")
	calls := map[string]*regexp.Regexp{} // of what a fragment defines
	for file := range scripts(t, "common/*.lua") {
		var names []string
		definition := regexp.MustCompile(`(?m)^local (?:function )?(\w+)(?:\(| =)`)
		for _, found := range definition.FindAllStringSubmatch(all[file], -1) {
			names = append(names, found[1])
		}
		require.NotEmpty(t, names, file)
		fragment := strings.TrimSuffix(filepath.Base(file), ".lua")
		calls[fragment] = regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\b`)
	}
	for file, source := range all {
		inScope := map[string]int{} // by fragment, how far it is indented
		unused := map[string]bool{}
		for line := range strings.Lines(source) {
			code := strings.TrimLeft(line, " ")
			indent := len(line) - len(code)
			if named, ok := strings.CutPrefix(code, "-- Needs "); ok {
				for name := range strings.SplitSeq(strings.TrimSpace(named), ", ") {
					inScope[name], unused[name] = indent, true
				}
				continue
			}
			code = regexp.MustCompile(`--.*|'[^']*'`).ReplaceAllString(code, "")
			if strings.TrimSpace(code) == "" {
				continue
			}
			maps.DeleteFunc(inScope, func(_ string, declared int) bool { return declared > indent })
			for fragment, call := range calls {
				if file != filepath.Join("common", fragment+".lua") && call.MatchString(code) {
					require.Contains(t, inScope, fragment, "%s: %s", file, line)
					delete(unused, fragment)
				}
			}
		}
		require.Empty(t, unused, file)
	}
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

func TestRepliesThatMayBeErrorsAreReadInOnePlace(t *testing.T) {
	for file, source := range scripts(t, "*.lua", "common/*.lua") {
		switch file {
		case "common/attempt.lua":
		case "acquire.lua", "release_only.lua", "release.lua": // where no function is created
		default:
			require.NotContains(t, source, "redis.pcall", file)
		}
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
