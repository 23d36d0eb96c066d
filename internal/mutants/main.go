// Command mutants tests the tests: it makes one small change of the library after the other, and
// records which ones the tests notice. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// options are the flags.
type options struct {
	draw, again, summary                  bool
	only, tests, in, results, compareWith string
	from, to, jobs                        int
	most                                  float64
}

func main() {
	var o options
	flag.BoolVar(&o.draw, "draw", false, "draw the sample anew, and do nothing else")
	flag.BoolVar(&o.summary, "summary", false, "only print the results that there are")
	flag.BoolVar(&o.again, "again", false, "also run mutants that have a result")
	flag.StringVar(&o.only, "only", "", "run only the mutants with these `numbers`: 12,17")
	flag.IntVar(&o.from, "from", 1, "run only mutants from this number on")
	flag.IntVar(&o.to, "to", 1<<30, "run only mutants up to this number")
	flag.StringVar(&o.in, "in", "", "use only these `packages`, their mutants and their tests: "+
		"watchdog,internal/wait")
	flag.StringVar(&o.tests, "tests", "all", "which stages: all, plain or redis (`kind`)")
	flag.Float64Var(&o.most, "most", 120, "how many `seconds` of tests to run in a stage at most")
	flag.IntVar(&o.jobs, "jobs", 1, "how many mutants to run at once")
	flag.StringVar(&o.results, "results", "internal/mutants/results.txt", "the `file` of results")
	flag.StringVar(&o.compareWith, "compare", "", "fail if fewer mutants are killed than in this "+
		"`file`, and list those that are not killed any more")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The library alone: in a workspace, go list -m names all modules of it.
	if err := os.Setenv("GOWORK", "off"); err != nil {
		return err
	}
	out, err := command(".", "go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}")
	if err != nil {
		return err
	}
	root, module, _ := strings.Cut(strings.TrimSpace(out), "\n")
	file := filepath.Join(root, "internal", "mutants", "sample.txt")
	if o.draw {
		sample, err := draw(root)
		if err != nil {
			return err
		}
		return writeSample(file, sample)
	}
	sample, err := readSample(file)
	if err != nil {
		return err
	}
	results, err := readResults(o.results)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	} else if err != nil {
		results = map[int]*result{}
	}
	if !o.summary {
		r := &runner{root: root, module: module, sample: sample, most: o.most}
		r.packages = append(slices.Clone(library), "rlocktest")
		if o.in != "" {
			r.packages = strings.Split(o.in, ",")
		}
		r.tags = []string{"", "redis"}
		switch o.tests {
		case "all":
		case "plain":
			r.tags = r.tags[:1]
		case "redis":
			r.tags = r.tags[1:]
		default:
			return fmt.Errorf("-tests %s: want all, plain or redis", o.tests)
		}
		if err := r.runAll(ctx, o, results); err != nil {
			return err
		}
	}
	summarize(os.Stdout, sample, results)
	if o.compareWith == "" {
		return nil
	}
	recorded, err := readResults(o.compareWith)
	if err != nil {
		return err
	}
	return compareResults(os.Stdout, sample, recorded, results)
}

// chosen returns the mutants to run.
func (r *runner) chosen(o *options, results map[int]*result) ([]*mutant, error) {
	var only []int
	for _, number := range strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		only = append(only, n)
	}
	var chosen []*mutant
	for _, m := range r.sample {
		if (only == nil || slices.Contains(only, m.number)) && o.from <= m.number &&
			m.number <= o.to && slices.Contains(r.packages, m.pkg()) &&
			(o.again || results[m.number] == nil) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

// runAll runs the chosen mutants, and adds their results to those that there are.
func (r *runner) runAll(ctx context.Context, o *options, results map[int]*result) error {
	chosen, err := r.chosen(o, results)
	if err != nil || len(chosen) == 0 {
		return err
	}
	r.coverage = map[string]*coverage{}
	for _, tags := range r.tags {
		r.coverage[tags], err = r.loadCoverage(ctx, tags)
		if err != nil {
			return err
		}
	}
	if err := sortResults(o.results, results); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *mutant)
	var mu sync.Mutex
	var group sync.WaitGroup
	for job := range o.jobs {
		c, err := copyRepository(r.root, job+1)
		if err != nil {
			return err
		}
		group.Go(func() {
			for m := range next {
				found, err := r.try(ctx, c, m)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				results[m.number] = found
				fmt.Printf("%s\t%s:%d %s\n", found, m.file, m.line, m.kind)
				if err := appendResult(o.results, found); err != nil {
					cancel(err)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range chosen {
		select {
		case next <- m:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return sortResults(o.results, results)
}
