package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// library lists the packages whose code is mutated.
var library = []string{
	"rlock", "multilock", "redlock", "pubsub", "watchdog", "lua",
	"internal/compose", "internal/eval", "internal/identity", "internal/losses", "internal/owner",
	"internal/rediserr", "internal/session", "internal/survey", "internal/transition",
	"internal/transport", "internal/wait", "internal/waitqueue", "internal/wire",
}

// How many mutants the sample has of code in Go and of scripts, and how many of each package in Go
// at least, if it has so many lines to change.
const goMutants, luaMutants, leastOfPackage = 205, 80, 4

// stratum is a part of the library that gets its share of the sample: a package in Go, or the
// scripts of a folder.
type stratum struct {
	candidates []*mutant
	weight     int                // its lines of code
	compiles   func(*mutant) bool // reports whether a candidate is valid code
}

// draw draws a sample. It is the same for the same code.
func draw(root string) ([]*mutant, error) {
	random := rand.New(rand.NewPCG(1, 2))
	var sample []*mutant
	inGo, err := goStrata(root)
	if err != nil {
		return nil, err
	}
	inLua, closeLua, err := luaStrata(root)
	if err != nil {
		return nil, err
	}
	defer closeLua()
	for _, s := range inGo {
		sample = append(sample, s.pick(random, max(leastOfPackage, share(s, inGo, goMutants)))...)
	}
	for _, s := range inLua {
		sample = append(sample, s.pick(random, share(s, inLua, luaMutants))...)
	}
	for i, m := range sample {
		m.number = i + 1
	}
	return sample, nil
}

// share returns how many of n mutants a stratum gets.
func share(s *stratum, all []*stratum, n int) int {
	sum := 0
	for _, other := range all {
		sum += other.weight
	}
	return (n*s.weight + sum/2) / sum
}

// kinds lists all kinds of mutants, some of them more than once: the sample has more of those.
var kinds = []string{
	"removed statement", "removed statement", "removed statement", "comparison", "comparison",
	"condition", "condition", "logical", "removed body", "removed case", "arithmetic", "boolean",
}

// pick draws n mutants that compile, of the kinds in turn as far as there are any, and no two on
// one line. They are sorted by file and line.
func (s *stratum) pick(random *rand.Rand, n int) []*mutant {
	byKind := map[string][]*mutant{}
	for _, m := range s.candidates {
		byKind[m.kind] = append(byKind[m.kind], m)
	}
	turns := slices.Clone(kinds)
	random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	var picked []*mutant
	taken := map[string]bool{}
	for len(picked) < n && len(byKind) > 0 {
		for _, kind := range turns {
			from := byKind[kind]
			for len(from) > 0 && len(picked) < n {
				i := random.IntN(len(from))
				m := from[i]
				from = slices.Delete(from, i, i+1)
				place := fmt.Sprint(m.file, m.line)
				if !taken[place] && s.compiles(m) {
					taken[place] = true
					picked = append(picked, m)
					break
				}
			}
			byKind[kind] = from
			if len(from) == 0 {
				delete(byKind, kind)
			}
		}
	}
	slices.SortFunc(picked, func(a, b *mutant) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line)
	})
	return picked
}

// change returns the mutant in which with replaces the bytes of source from start to end; or nil if
// that cannot be written as a line of the sample.
func change(file, source, kind string, start, end int, with string) *mutant {
	first := strings.LastIndexByte(source[:start], '\n') + 1
	last := len(source)
	if i := strings.IndexByte(source[end:], '\n'); i >= 0 {
		last = end + i
	}
	m := &mutant{file: file, kind: kind, line: strings.Count(source[:first], "\n") + 1}
	m.original = trimmed(source[first:last])
	m.mutated = trimmed(source[first:start] + with + source[end:last])
	// A comment that explained what is removed is removed, too.
	if with == "" && !slices.ContainsFunc(m.mutated, isCode) {
		m.mutated = nil
	}
	m.mutated = slices.DeleteFunc(m.mutated, func(line string) bool { return line == "" })
	lines := trimmed(source)
	for i := range m.line {
		if len(lines)-i >= len(m.original) && m.matches(lines[i:]) {
			m.nth++
		}
	}
	if strings.Count(m.String(), "\t") != 5 || len(m.original) > mostLines {
		return nil
	}
	return m
}

// mostLines bounds how much code a mutant removes.
const mostLines = 6

func isCode(line string) bool {
	return line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "--")
}

// trimmed returns the lines of a text without the space around them.
func trimmed(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// linesOfCode counts the lines of a text that are neither empty nor comments.
func linesOfCode(text string) int {
	n := 0
	for _, line := range trimmed(text) {
		if isCode(line) {
			n++
		}
	}
	return n
}

// writeSample writes the sample.
func writeSample(file string, sample []*mutant) error {
	var b strings.Builder
	b.WriteString("# Drawn by go run ./internal/mutants -draw; see README.md. Between tabs: number, " +
		"file:line when drawn,\n# kind, how often the file had the original lines so far, original " +
		"lines, lines of the mutant.\n")
	for _, m := range sample {
		b.WriteString(m.String() + "\n")
	}
	return os.WriteFile(filepath.FromSlash(file), []byte(b.String()), 0o644)
}
