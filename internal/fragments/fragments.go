// Package fragments assembles the scripts of package lua. Several of them need the same functions,
// but a server accepts only whole scripts.
package fragments

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// needs matches a line that declares fragments.
var needs = regexp.MustCompile(`(?m)^( *)-- Needs ([a-z_]+(?:, [a-z_]+)*)\n`)

// Read returns the scripts of a directory as servers get them, by file: each .lua file with the
// fragments that it needs, which are the files of the subdirectory common.
//
// A line "-- Needs a, b" in a script is replaced by common/a.lua and common/b.lua, each after the
// fragments that its own such lines name. A fragment that is in scope already is not included
// again. A fragment that a block includes is in scope until the block ends. A script can thereby
// include what it seldom needs only where it needs it: creating a function costs a server as much
// as a command.
//
// Read panics if a fragment does not exist or needs itself.
func Read(dir fs.FS) map[string]string {
	files, err := fs.Glob(dir, "*.lua")
	if err != nil {
		panic(err) // the pattern is bad
	}
	scripts := make(map[string]string, len(files))
	for _, file := range files {
		s := script{dir: dir, file: file}
		scripts[file] = s.expand(read(dir, file, file))
	}
	return scripts
}

// script is a script that is being assembled.
type script struct {
	dir      fs.FS
	file     string
	out      strings.Builder
	included []inclusion // in scope
}

// inclusion is a fragment in scope.
type inclusion struct {
	fragment string
	indent   int // of the block that includes it
}

// expand returns the source of the script with its fragments.
func (s *script) expand(source string) string {
	for line := range strings.Lines(source) {
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		if found := needs.FindStringSubmatch(line); found != nil {
			for name := range strings.SplitSeq(found[2], ", ") {
				s.include(name, indent, []string{s.file})
			}
			continue
		}
		if text != "\n" {
			deeper := func(i inclusion) bool { return i.indent > indent }
			s.included = slices.DeleteFunc(s.included, deeper)
		}
		s.out.WriteString(line)
	}
	return s.out.String()
}

// include adds a fragment that is not in scope, after those that it needs. needing holds the script
// and the fragments that led to it.
func (s *script) include(fragment string, indent int, needing []string) {
	path := append(slices.Clone(needing), fragment)
	if slices.Contains(needing, fragment) {
		panic("a fragment needs itself: " + strings.Join(path, " -> "))
	}
	if slices.ContainsFunc(s.included, func(i inclusion) bool { return i.fragment == fragment }) {
		return
	}
	source := read(s.dir, "common/"+fragment+".lua", strings.Join(path, " -> "))
	for _, found := range needs.FindAllStringSubmatch(source, -1) {
		for name := range strings.SplitSeq(found[2], ", ") {
			s.include(name, indent, path)
		}
	}
	s.out.WriteString(needs.ReplaceAllString(source, ""))
	s.included = append(s.included, inclusion{fragment, indent})
}

func read(dir fs.FS, file, wanted string) string {
	source, err := fs.ReadFile(dir, file)
	if err != nil {
		panic(fmt.Sprintf("script %s: %v", wanted, err))
	}
	return string(source)
}
