package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one small change of the library that its tests should notice.
type mutant struct {
	number int
	file   string // from the root of the repository
	line   int    // the first one, when the sample was drawn
	kind   string
	// original and mutated are whole lines without the space around them. Lines may move, so a mutant
	// is where the file has original for the nth time, counted from 1.
	original, mutated []string
	nth               int
}

// In a line of the sample this stands between lines of code, and for no code at all.
const newline, nothing = " ⏎ ", "(removed)"

// pkg returns the folder of the package whose tests should notice first.
func (m *mutant) pkg() string { return strings.TrimSuffix(path.Dir(m.file), "/common") }

// isLua reports whether the mutant is one of a script.
func (m *mutant) isLua() bool { return strings.HasSuffix(m.file, ".lua") }

// String returns the line of the sample.
func (m *mutant) String() string {
	mutated := strings.Join(m.mutated, newline)
	if mutated == "" {
		mutated = nothing
	}
	return fmt.Sprintf("%d\t%s:%d\t%s\t%d\t%s\t%s", m.number, m.file, m.line, m.kind, m.nth,
		strings.Join(m.original, newline), mutated)
}

// parseMutant is the opposite of String.
func parseMutant(line string) (*mutant, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 6 {
		return nil, fmt.Errorf("want 6 fields between tabs: %q", line)
	}
	number, err1 := strconv.Atoi(fields[0])
	file, at, _ := strings.Cut(fields[1], ":")
	lineNumber, err2 := strconv.Atoi(at)
	nth, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, fmt.Errorf("not a number: %q", line)
	}
	m := &mutant{number: number, file: file, line: lineNumber, kind: fields[2], nth: nth,
		original: strings.Split(fields[4], newline)}
	if fields[5] != nothing {
		m.mutated = strings.Split(fields[5], newline)
	}
	return m, nil
}

// readSample reads the sample; lines that begin with # are comments.
func readSample(file string) ([]*mutant, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	var sample []*mutant
	for _, line := range lines {
		m, err := parseMutant(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sample = append(sample, m)
	}
	return sample, nil
}

// readLines returns the lines of a file that are neither empty nor comments.
func readLines(file string) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool {
		return line == "" || line[0] == '#'
	}), nil
}

// find returns where the mutant's original lines are now, as an index into the lines of its file,
// or -1 if they are gone.
func (m *mutant) find(lines []string) int {
	n := 0
	for i := range len(lines) - len(m.original) + 1 {
		if m.matches(lines[i:]) {
			n++
			if n == m.nth {
				return i
			}
		}
	}
	return -1
}

// matches reports whether lines begin with the original ones.
func (m *mutant) matches(lines []string) bool {
	for i, line := range m.original {
		if strings.TrimSpace(lines[i]) != line {
			return false
		}
	}
	return true
}

// mutate returns the source with the change, or false if the original lines are gone. Lines that
// are removed leave empty ones behind, so that all others keep their numbers.
func (m *mutant) mutate(source string) (string, bool) {
	lines := strings.Split(source, "\n")
	at := m.find(lines)
	if at < 0 {
		return "", false
	}
	changed := make([]string, max(len(m.original), len(m.mutated)))
	copy(changed, m.mutated)
	return strings.Join(slices.Replace(lines, at, at+len(m.original), changed...), "\n"), true
}

// apply changes the mutant's file in a copy of the repository. restore takes the change back; it is
// nil if the original lines are gone.
func (m *mutant) apply(root string) (restore func() error, err error) {
	file := filepath.Join(root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	changed, found := m.mutate(string(source))
	if !found {
		return nil, nil
	}
	restore = func() error { return os.WriteFile(file, source, 0o644) }
	return restore, os.WriteFile(file, []byte(changed), 0o644)
}
