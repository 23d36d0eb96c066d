package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stages has which tests look for a mutant, one stage after the other until a test fails. Tests
// without the tag redis run on a server in their process, the others start server processes.
var stages = []struct {
	name string
	own  bool // the tests of the mutant's package, else those of the others
	tags string
}{
	{"own", true, ""},
	{"others", false, ""},
	{"own redis", true, "redis"},
	{"others redis", false, "redis"},
}

// runner tests mutants.
type runner struct {
	root, module string
	sample       []*mutant
	packages     []string             // whose tests are run
	tags         []string             // with which they are run
	most         float64              // seconds of tests per stage
	coverage     map[string]*coverage // by tags
}

// batch is a number of tests of one package that are run together.
type batch struct {
	pkg     string
	tests   []string
	seconds float64 // if they ran one after the other
}

// How long the tests of the first batch of a package take. They run first, because many mutants
// make a test hang, and the limit of a batch is a multiple of its time.
const quickBatch = 5.0

// plan returns the batches of a stage: the tests that reach the mutant, as many as the limit
// allows, the quickest first. It also returns how many tests reach it.
func (r *runner) plan(m *mutant, own bool, tags string) (batches []batch, reach int) {
	var tests []*test
	for _, t := range r.coverage[tags].Tests {
		if (t.Package == m.pkg()) == own && r.coverage[tags].reaches(t, m) {
			tests = append(tests, t)
		}
	}
	// With a real server, those come first that have not been run without one.
	before := map[string]bool{}
	if plain := r.coverage[""]; tags != "" && plain != nil {
		for _, t := range plain.Tests {
			before[t.Package+t.Name] = true
		}
	}
	slices.SortFunc(tests, func(a, b *test) int {
		known := func(t *test) int {
			if before[t.Package+t.Name] {
				return 1
			}
			return 0
		}
		return cmp.Or(known(a)-known(b), cmp.Compare(a.Seconds, b.Seconds))
	})
	sum := 0.0
	byPackage := map[string][]*test{}
	for _, t := range tests {
		sum += t.Seconds
		if sum <= r.most || len(byPackage) == 0 {
			byPackage[t.Package] = append(byPackage[t.Package], t)
		}
	}
	for _, pkg := range r.packages {
		batches = append(batches, split(byPackage[pkg])...)
	}
	return batches, len(tests)
}

// split returns the tests of one package in at most two batches: a quick one and the others.
func split(tests []*test) []batch {
	slices.SortFunc(tests, func(a, b *test) int { return cmp.Compare(a.Seconds, b.Seconds) })
	var quick, others batch
	for _, t := range tests {
		b := &quick
		if quick.seconds+t.Seconds > quickBatch {
			b = &others
		}
		b.pkg, b.seconds = t.Package, b.seconds+t.Seconds
		b.tests = append(b.tests, t.Name)
	}
	return slices.DeleteFunc([]batch{quick, others}, func(b batch) bool { return len(b.tests) == 0 })
}

// limit returns after how long a batch counts as hanging.
func (b *batch) limit() time.Duration {
	return 20*time.Second + time.Duration(4*b.seconds*float64(time.Second))
}

// result is what became of a mutant.
type result struct {
	number  int
	outcome string // killed, timeout, survived, gone, broken
	stage   string // the one in which it was killed
	seconds float64
	note    string // the first failed test; for a survivor, how many tests were run
}

// try tests one mutant. It returns nil if ctx has ended.
func (r *runner) try(ctx context.Context, c *checkout, m *mutant) (*result, error) {
	start := time.Now()
	restore, err := m.apply(c.root)
	if err != nil {
		return nil, err
	}
	found := &result{number: m.number, outcome: "gone", stage: "-", note: "-"}
	if restore != nil {
		r.runStages(ctx, c, m, found)
		err = restore()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	found.seconds = time.Since(start).Seconds()
	return found, err
}

// runStages runs the tests until one fails.
func (r *runner) runStages(ctx context.Context, c *checkout, m *mutant, found *result) {
	ran, reach := 0, 0
	for _, stage := range stages {
		if !slices.Contains(r.tags, stage.tags) {
			continue
		}
		batches, n := r.plan(m, stage.own, stage.tags)
		reach += n
		var binary string
		for i, b := range batches {
			if i == 0 || b.pkg != batches[i-1].pkg {
				var err error
				binary, err = c.build(ctx, b.pkg, stage.tags)
				if err != nil || binary == "" {
					found.outcome, found.stage = "broken", stage.name
					found.note = firstLine(fmt.Sprint(err))
					return
				}
			}
			ran += len(b.tests)
			if outcome, test := c.notices(ctx, binary, &b, stage.tags); outcome != "" {
				found.outcome, found.stage = outcome, stage.name
				found.note = b.pkg + " " + test
				return
			}
		}
	}
	found.outcome, found.note = "survived", fmt.Sprintf("%d of %d tests", ran, reach)
	if reach == 0 {
		found.note = "no test reaches it"
	}
}

// notices runs a batch of tests. It returns killed or timeout and the first test that failed, or
// "". A failure counts if the test also fails alone, or if the batch fails again.
func (c *checkout) notices(ctx context.Context, binary string, b *batch, tags string) (
	outcome, failed string) {
	for range 2 {
		out, late, err := c.test(ctx, binary, b.pkg, tags, b.limit(), b.tests)
		if err == nil || ctx.Err() != nil {
			return "", ""
		}
		names := failures(out)
		switch {
		case late || strings.Contains(out, "panic: test timed out"):
			name, _, _ := strings.Cut(firstLine(running.FindString(out)), " ")
			return "timeout", cmp.Or(name, "hangs")
		case failed != "": // the second time
			return "killed", failed
		case len(names) == 0:
			return "killed", firstLine(cmp.Or(panicked.FindString(out), tail(out)))
		}
		failed = names[0]
		_, _, err = c.test(ctx, binary, b.pkg, tags, b.limit(), names[:1])
		if err != nil {
			return "killed", failed
		}
	}
	return "", ""
}

// test runs some tests of a package, or all of them if tests is nil.
func (c *checkout) test(ctx context.Context, binary, pkg, tags string, limit time.Duration,
	tests []string, flags ...string) (out string, late bool, err error) {
	flags = append(flags, "-test.parallel=8", "-test.timeout="+limit.String())
	if tests != nil {
		flags = append(flags, "-test.failfast", "-test.run=^("+strings.Join(tests, "|")+")$")
	}
	dir := filepath.Join(c.root, filepath.FromSlash(pkg))
	return c.exec(ctx, limit+5*time.Second, dir, tags, binary, flags...)
}

var (
	failure  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	panicked = regexp.MustCompile(`(?m)^(panic|fatal error|goleak): .*`)
	running  = regexp.MustCompile(`(?m)^\t+(Test|Example|Fuzz)\S* \(`)
)

// failures returns the tests that failed, by what they printed.
func failures(out string) []string {
	var names []string
	for _, found := range failure.FindAllStringSubmatch(out, -1) {
		names = append(names, found[1])
	}
	return names
}

// firstLine returns the beginning of a text as a part of one line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	return line[:min(len(line), 80)]
}
