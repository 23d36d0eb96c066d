package lua_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
)

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
