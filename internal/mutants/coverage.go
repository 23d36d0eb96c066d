package main

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/internal/fragments"
)

// coverage has which mutants each test reaches. It is recorded once for the code and the tests as
// they are, and kept in a file that is not committed.
type coverage struct {
	Key   string // tells the code for which it was recorded
	Tests []*test
	// Outside lists mutants of code that belongs to no function: the profiles do not have it.
	Outside []int
}

// test is a test function that was run alone.
type test struct {
	Package, Name string
	Seconds       float64
	Reaches       []int // the numbers of mutants
}

// reaches reports whether a test may notice the mutant.
func (c *coverage) reaches(t *test, m *mutant) bool {
	return slices.Contains(t.Reaches, m.number) ||
		t.Package == m.pkg() && slices.Contains(c.Outside, m.number)
}

// place is where a mutant's code is.
type place struct {
	mutant      int
	first, last int // lines
}

// loadCoverage reads what was recorded, or records it after a check that all tests succeed.
func (r *runner) loadCoverage(ctx context.Context, tags string) (*coverage, error) {
	key, err := r.key(tags)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(r.root, ".tools", "mutants", "coverage"+tags+".json")
	known := &coverage{}
	if content, err := os.ReadFile(file); err == nil && json.Unmarshal(content, known) == nil &&
		known.Key == key {
		return known, nil
	}
	c, err := copyRepository(r.root, 1)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := r.checkTests(ctx, c, tags); err != nil {
		return nil, err
	}
	fmt.Printf("all tests%s succeed without a mutant (%.0f s); recording what each one reaches\n",
		withTags(tags), time.Since(start).Seconds())
	known, err = r.record(ctx, c, tags)
	if err != nil {
		return nil, err
	}
	fmt.Printf("recorded %d tests (%.0f s)\n", len(known.Tests), time.Since(start).Seconds())
	known.Key = key
	content, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return known, os.WriteFile(file, content, 0o644)
}

func withTags(tags string) string {
	if tags == "" {
		return ""
	}
	return " with -tags " + tags
}

// key returns a hash of all code that the tests could need, and of what else the coverage depends
// on. This tool is not part of it, so that it can be changed without a new record.
func (r *runner) key(tags string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), tags, r.packages)
	for _, m := range r.sample {
		fmt.Fprintln(hash, m)
	}
	files, err := trackedFiles(r.root)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		top, _, _ := strings.Cut(file, "/")
		if top != "go.mod" && top != "internal" && !slices.Contains(r.packages, top) ||
			!slices.Contains([]string{".go", ".lua", ".mod"}, filepath.Ext(file)) ||
			strings.HasPrefix(file, "internal/mutants/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.root, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %x\n", file, sha256.Sum256(content))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// checkTests runs all tests without a mutant. One that fails may succeed when it is run again.
func (r *runner) checkTests(ctx context.Context, c *checkout, tags string) error {
	for _, pkg := range r.packages {
		binary, err := c.build(ctx, pkg, tags)
		if err != nil {
			return err
		}
		if binary == "" {
			continue
		}
		out, _, err := c.test(ctx, binary, pkg, tags, 20*time.Minute, nil)
		if err == nil {
			continue
		}
		failed := failures(out)
		if len(failed) > 0 {
			fmt.Printf("%s: failed at first%s: %s\n", pkg, withTags(tags), strings.Join(failed, ", "))
			_, _, err = c.test(ctx, binary, pkg, tags, 20*time.Minute, failed)
		}
		if err != nil {
			return fmt.Errorf("the tests of %s fail%s without a mutant: %w\n%s", pkg, withTags(tags),
				err, tail(out))
		}
	}
	return nil
}

// tail returns the end of a long output.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// recorders bounds how many tests are run at once when each one's coverage is recorded.
const recorders = 4

// record runs each test alone with a profile of what it covers.
func (r *runner) record(ctx context.Context, c *checkout, tags string) (*coverage, error) {
	places, err := r.places(c)
	if err != nil {
		return nil, err
	}
	found := &coverage{}
	inProfile := map[int]bool{}
	for _, pkg := range r.packages {
		binary, err := c.build(ctx, pkg, tags, "-cover", "-coverpkg=./"+strings.Join(library, ",./"))
		if err != nil {
			return nil, err
		}
		if binary == "" {
			continue
		}
		dir := filepath.Join(c.root, pkg)
		out, _, err := c.exec(ctx, time.Minute, dir, tags, binary, "-test.list", ".")
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		tests := make([]*test, 0)
		for _, name := range testName.FindAllString(out, -1) {
			tests = append(tests, &test{Package: pkg, Name: name})
		}
		var mu sync.Mutex
		var group sync.WaitGroup
		next := make(chan *test)
		for i := range recorders {
			group.Go(func() {
				for t := range next {
					profile := filepath.Join(c.bin, fmt.Sprint("profile", i))
					start := time.Now()
					// A test that fails only because of the profile covers what it covers.
					_, _, _ = c.test(ctx, binary, pkg, tags, 5*time.Minute, []string{t.Name},
						"-test.coverprofile="+profile)
					t.Seconds = time.Since(start).Seconds()
					mu.Lock()
					t.Reaches = readProfile(profile, r.module, places, inProfile)
					mu.Unlock()
				}
			})
		}
		for _, t := range tests {
			next <- t
		}
		close(next)
		group.Wait()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found.Tests = append(found.Tests, tests...)
	}
	for _, m := range r.sample {
		if !inProfile[m.number] {
			found.Outside = append(found.Outside, m.number)
		}
	}
	return found, nil
}

// testName matches a line of go test -list.
var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\S*$`)

// readProfile returns the mutants that a profile of coverage reaches. It notes in known the mutants
// that the profile mentions at all.
func readProfile(file, module string, places map[string][]place, known map[int]bool) []int {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil // the test ended its process
	}
	_ = os.Remove(file)
	reached := map[int]bool{}
	for _, block := range profileBlock.FindAllStringSubmatch(string(content), -1) {
		first, _ := strconv.Atoi(block[2])
		last, _ := strconv.Atoi(block[3])
		for _, p := range places[strings.TrimPrefix(block[1], module+"/")] {
			if first <= p.last && p.first <= last {
				known[p.mutant] = true
				if block[4] != "0" {
					reached[p.mutant] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(reached))
}

// profileBlock matches "file:line.column,line.column statements count".
var profileBlock = regexp.MustCompile(`(?m)^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$`)

// ranFile is added to package eval while coverage is recorded. It has a line per script.
const ranFile = "internal/eval/ran_by_mutants.go"

// places returns where the mutants are, by file. A mutant of a script is where ranFile says which
// script runs, for each script that has its line.
func (r *runner) places(c *checkout) (map[string][]place, error) {
	scripts := fragments.Read(os.DirFS(filepath.Join(c.root, "lua")))
	lines, err := noteScripts(c, scripts)
	if err != nil {
		return nil, err
	}
	places := map[string][]place{}
	for _, m := range r.sample {
		if m.isLua() {
			for script, source := range scripts {
				if slices.Contains(trimmed(source), m.original[0]) {
					line := lines[script]
					places[ranFile] = append(places[ranFile], place{m.number, line, line})
				}
			}
			continue
		}
		source, err := os.ReadFile(filepath.Join(c.root, m.file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if at := m.find(strings.Split(string(source), "\n")); at >= 0 {
			places[m.file] = append(places[m.file], place{m.number, at + 1, at + len(m.original)})
		}
	}
	return places, nil
}

// noteScripts makes package eval of a checkout execute a line of ranFile whenever a script is run,
// and returns which line, by script.
func noteScripts(c *checkout, scripts map[string]string) (map[string]int, error) {
	file, send := filepath.Join(c.root, "internal", "eval", "script.go"), "func (s *Script) send("
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before, after, found := strings.Cut(string(source), send)
	line, rest, _ := strings.Cut(after, "\n")
	if !found {
		return nil, fmt.Errorf("internal/eval/script.go has no %q: what runs a script now?", send)
	}
	changed := before + send + line + "\n\ts.ran()\n" + rest
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		return nil, err
	}
	ran := "package eval\n\nfunc (s *Script) ran() {\n\tswitch s.text().sha1 {\n"
	lines := map[string]int{}
	for _, script := range slices.Sorted(maps.Keys(scripts)) {
		ran += fmt.Sprintf("\tcase \"%x\":\n\t\t_ = s\n", sha1.Sum([]byte(scripts[script])))
		lines[script] = strings.Count(ran, "\n")
	}
	return lines, os.WriteFile(filepath.Join(c.root, ranFile), []byte(ran+"\t}\n}\n"), 0o644)
}
