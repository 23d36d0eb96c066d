package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// luaKinds has what is changed in a line of a script: what the pattern's first group matches.
var luaKinds = []struct {
	kind    string
	pattern *regexp.Regexp
	with    func(string) string
}{
	{"removed statement", regexp.MustCompile(`^ *([\w.]+\(.*\))$`), removed},
	{"removed statement", regexp.MustCompile(`^ *([\w.\[\], ]+ = .*[^,({])$`), removed},
	{"condition", regexp.MustCompile(`^ *(?:else)?if (.*?) then\b`), negated},
	{"comparison", regexp.MustCompile(`.* (==|~=|<=|>=|<|>) `), swappedInLua},
	{"logical", regexp.MustCompile(`^[^=]*\b(and|or)\b`), swappedInLua},
	{"logical", regexp.MustCompile(`.*\b(and|or)\b`), swappedInLua},
	{"arithmetic", regexp.MustCompile(`.* ([-+]) `), swappedInLua},
	{"boolean", regexp.MustCompile(`.*\b(true|false)\b`), swappedInLua},
}

func removed(string) string { return "" }

func negated(condition string) string { return "not (" + condition + ")" }

func swappedInLua(operator string) string {
	return map[string]string{
		"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
		"and": "or", "or": "and", "+": "-", "-": "+", "true": "false", "false": "true",
	}[operator]
}

// unchanged matches lines in which a change would mean nothing, or be refused at once: the last
// argument of string.find says that the pattern is plain text; without its declaration a variable
// is global.
var unchanged = map[string]*regexp.Regexp{
	"boolean":           regexp.MustCompile(`string\.find`),
	"removed statement": regexp.MustCompile(`^ *local `),
}

// luaStrata returns a stratum of the scripts and one of their fragments.
func luaStrata(root string) (strata []*stratum, closing func(), err error) {
	parses, closing, err := luaParser()
	if err != nil {
		return nil, nil, err
	}
	for _, pattern := range []string{"lua/*.lua", "lua/common/*.lua"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, closing, err
		}
		sources := map[string]string{}
		s := &stratum{compiles: func(m *mutant) bool {
			source, _ := m.mutate(sources[m.file])
			return parses(source)
		}}
		for _, path := range files {
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, closing, err
			}
			file := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(root)+"/")
			sources[file] = string(source)
			s.weight += linesOfCode(string(source))
			s.candidates = append(s.candidates, luaCandidates(file, string(source))...)
		}
		strata = append(strata, s)
	}
	return strata, closing, nil
}

func luaCandidates(file, source string) []*mutant {
	var found []*mutant
	at := 0
	for line := range strings.Lines(source) {
		code, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "--")
		code = strings.TrimRight(code, " ")
		for _, k := range luaKinds {
			group := k.pattern.FindStringSubmatchIndex(code)
			except := unchanged[k.kind]
			if group == nil || except != nil && except.MatchString(code) {
				continue
			}
			if m := change(file, source, k.kind, at+group[2], at+group[3],
				k.with(code[group[2]:group[3]])); m != nil {
				found = append(found, m)
			}
		}
		at += len(line)
	}
	return found
}

// luaParser returns what reports whether a server in this process accepts a script.
func luaParser() (parses func(source string) bool, closing func(), err error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, nil, err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true,
	})
	if err != nil {
		server.Close()
		return nil, nil, err
	}
	parses = func(source string) bool {
		load := client.B().ScriptLoad().Script(source).Build()
		return client.Do(context.Background(), load).Error() == nil
	}
	return parses, func() { client.Close(); server.Close() }, nil
}
