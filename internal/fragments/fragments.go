// Package fragments assembles the scripts of package lua: several need the same functions, but a
// server accepts only whole scripts.
package fragments

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Files returns the names of the scripts of a directory, which are its .lua files.
func Files(dir fs.FS) []string {
	files, _ := fs.Glob(dir, "*.lua") // an error would mean that the pattern is bad
	return files
}

// Read returns all scripts of a directory as servers get them, by file.
func Read(dir fs.FS) map[string]string {
	scripts := map[string]string{}
	for _, file := range Files(dir) {
		scripts[file] = Assemble(dir, file)
	}
	return scripts
}

// Assemble returns a script as servers get it, with the fragments that it needs, which are files of
// the subdirectory common. It panics if a fragment does not exist or needs itself.
//
// A line "-- Needs a, b" in a script is replaced by common/a.lua and common/b.lua, each after the
// fragments that its own such lines name. A fragment that is in scope already is not included
// again: one that a block includes is in scope until the block ends. A script can thus include what
// it seldom needs only there: a server creates the functions again in each run.
func Assemble(dir fs.FS, file string) string {
	s := script{dir: dir, included: map[string]int{}}
	for line := range strings.Lines(s.read(file, file)) {
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		if text != "\n" {
			maps.DeleteFunc(s.included, func(_ string, of int) bool { return of > indent })
		}
		s.add(line, indent, file)
	}
	return s.out.String()
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
	var rest strings.Builder
	for line := range strings.Lines(source) {
		names, declares := strings.CutPrefix(strings.TrimLeft(line, " "), "-- Needs ")
		if !declares {
			rest.WriteString(line)
			continue
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(names, "\n"), ", ") {
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
	s.out.WriteString(rest.String())
}

func (s *script) read(file string, path ...string) string {
	source, err := fs.ReadFile(s.dir, file)
	if err != nil {
		panic(fmt.Sprintf("script %s: %v", strings.Join(path, " -> "), err))
	}
	return string(source)
}
