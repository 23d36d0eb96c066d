package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (r *result) String() string {
	return fmt.Sprintf("%d\t%s\t%s\t%.0f\t%s", r.number, r.outcome, r.stage, r.seconds, r.note)
}

// killed reports whether the tests noticed the mutant.
func (r *result) killed() bool {
	return r != nil && (r.outcome == "killed" || r.outcome == "timeout")
}

// readResults reads results by the number of the mutant; the latest of each counts.
func readResults(file string) (map[int]*result, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	results := map[int]*result{}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s: want 5 fields between tabs: %q", file, line)
		}
		number, err1 := strconv.Atoi(fields[0])
		seconds, err2 := strconv.ParseFloat(fields[3], 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results[number] = &result{number, fields[1], fields[2], seconds, fields[4]}
	}
	return results, nil
}

// appendResult adds a result to the file.
func appendResult(file string, r *result) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, r)
	return errors.Join(err, f.Close())
}

// sortResults writes the file anew: the latest result of each mutant, by number.
func sortResults(file string, results map[int]*result) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# What became of each mutant of sample.txt, see README.md. Between tabs: number, " +
		"outcome, stage,\n# seconds, first failed test or the number of tests.\n")
	for _, number := range slices.Sorted(maps.Keys(results)) {
		fmt.Fprintln(&b, results[number])
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// summarize prints how many mutants were killed, by package and by kind.
func summarize(w io.Writer, sample []*mutant, results map[int]*result) {
	sums := map[string]map[string]int{}
	for _, m := range sample {
		outcome := "not run"
		if r := results[m.number]; r != nil {
			outcome = r.outcome
		}
		code := " (Go)"
		if m.isLua() {
			code = " (Lua)"
		}
		for _, row := range []string{"1" + m.pkg() + code, "2" + m.kind, "3all"} {
			if sums[row] == nil {
				sums[row] = map[string]int{}
			}
			sums[row][outcome]++
		}
	}
	columns := []string{"killed", "timeout", "survived", "gone", "broken", "not run"}
	fmt.Fprintf(w, "%-28s", "")
	for _, column := range columns {
		fmt.Fprintf(w, "%9s", column)
	}
	for _, row := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(w, "\n%-28s", row[1:])
		for _, column := range columns {
			fmt.Fprintf(w, "%9d", sums[row][column])
		}
	}
	fmt.Fprintln(w)
}

// compareResults prints each mutant that was killed and is not any more. It returns an error if
// fewer mutants are killed than were, of those with a result now.
func compareResults(w io.Writer, sample []*mutant, recorded, now map[int]*result) error {
	var before, after int
	for _, m := range sample {
		was, is := recorded[m.number], now[m.number]
		if is == nil {
			continue
		}
		if was.killed() {
			before++
		}
		if is.killed() {
			after++
		} else if was.killed() {
			fmt.Fprintf(w, "%s now, was %s by %s:\n\t%s\n", cmp.Or(is.outcome, "not run"), was.outcome,
				was.note, m)
		}
	}
	fmt.Fprintf(w, "%d mutants are killed, and %d of the same were\n", after, before)
	if after < before {
		return errors.New("fewer mutants are killed than recorded")
	}
	return nil
}
