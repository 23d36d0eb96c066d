// Package fragments assembles the scripts of package lua: several need the same functions, but a
// server accepts only whole scripts.
package fragments

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// needs matches a line that declares fragments.
var needs = regexp.MustCompile(`(?m)^ *-- Needs ([a-z_]+(?:, [a-z_]+)*)\n`)

// Read returns the scripts of a directory as servers get them, by file: each .lua file with the
// fragments that it needs, which are the files of the subdirectory common. It panics if a fragment
// does not exist or needs itself.
//
// A line "-- Needs a, b" in a script is replaced by common/a.lua and common/b.lua, each after the
// fragments that its own such lines name. A fragment that is in scope already is not included
// again: one that a block includes is in scope until the block ends. A script can thus include what
// it seldom needs only there: creating a function costs a server as much as a command.
func Read(dir fs.FS) map[string]string {
	files, _ := fs.Glob(dir, "*.lua") // an error would mean that the pattern is bad
	scripts := make(map[string]string, len(files))
	for _, file := range files {
		s := script{dir: dir, included: map[string]int{}}
		for line := range strings.Lines(s.read(file, file)) {
			text := strings.TrimLeft(line, " ")
			indent := len(line) - len(text)
			if text != "\n" {
				maps.DeleteFunc(s.included, func(_ string, of int) bool { return of > indent })
			}
			s.add(line, indent, file)
		}
		scripts[file] = s.out.String()
	}
	return scripts
}

// script is a script that is being assembled.
type script struct {
	dir      fs.FS
	out      strings.Builder
	included map[string]int // the fragments in scope; how far the block of each is indented
}

// add adds a source after the fragments that it declares and that are not in scope. path holds the
// script and the fragments that led to the source.
func (s *script) add(source string, indent int, path ...string) {
	if !strings.Contains(source, "-- Needs") { // much faster than the pattern
		s.out.WriteString(source)
		return
	}
	for _, found := range needs.FindAllStringSubmatch(source, -1) {
		for name := range strings.SplitSeq(found[1], ", ") {
			to := append(slices.Clone(path), name)
			if slices.Contains(path, name) {
				panic("a fragment needs itself: " + strings.Join(to, " -> "))
			}
			if _, known := s.included[name]; !known {
				s.add(s.read("common/"+name+".lua", to...), indent, to...)
				s.included[name] = indent
			}
		}
	}
	s.out.WriteString(needs.ReplaceAllString(source, ""))
}

func (s *script) read(file string, path ...string) string {
	source, err := fs.ReadFile(s.dir, file)
	if err != nil {
		panic(fmt.Sprintf("script %s: %v", strings.Join(path, " -> "), err))
	}
	return string(source)
}
