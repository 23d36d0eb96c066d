package lua_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var commandCall = regexp.MustCompile(`(?:redis\.p?call|attempt)\(([^,)]+)`)

// TestScriptsUseOnlyCommandsOfRedis62 allows commands by name: one that is added here must exist in 6.2, with the
// options that the script gives it.
func TestScriptsUseOnlyCommandsOfRedis62(t *testing.T) {
	known := []string{"'DEL'", "'EXISTS'", "'GET'", "'HDEL'", "'HEXISTS'", "'HGET'", "'HGETALL'", "'HKEYS'", "'HLEN'", "'HSET'", "'INCR'",
		"'INFO'", "'LINDEX'", "'LPOP'", "'LRANGE'", "'LREM'", "'PEXPIRE'", "'PTTL'", "'RPUSH'", "'SET'", "'TIME'", "'ZADD'",
		"'ZPOPMIN'", "'ZRANGE'", "'ZREM'", "'ZSCORE'",
		"'PUBSUB'", // with SHARDNUMSUB for sharded channels only, which 6.2 does not have either
		"verb",     // of an announcement
		"..."}      // what attempt was called with
	// Lua that came with 7: script flags, the ACL check, the other name of redis, options of PEXPIRE.
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

func TestScriptsSayWhatTheyDo(t *testing.T) {
	for file, source := range scripts(t, "*.lua") {
		header, _, found := strings.Cut(source, "\n\n")
		require.True(t, found, file)
		require.Regexp(t, `\A-- [A-Z][^\n]+[.,a-z]\n`, header, "%s: purpose", file)
		require.Regexp(t, `(?m)^-- KEYS\[`, header, file)
		require.Regexp(t, `(?m)^-- Returns +\S`, header, file)
		require.Regexp(t, `(?m)^-- Retry +safe`, header, file)
		for _, argument := range regexp.MustCompile(`(?:KEYS|ARGV)\[\d\]`).FindAllString(source, -1) {
			require.Contains(t, header, "-- "+argument, file)
		}
		for line := range strings.Lines(header) {
			require.True(t, strings.HasPrefix(line, "--"), "%s: %s", file, line)
		}
	}
}

// scripts reads the .lua files of the package that match.
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
