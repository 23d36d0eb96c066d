package rules_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"holdfast/cmd/holdfastvet/internal/rules"
)

// correct is the package of testdata that all rules look at, and in which they find nothing.
const correct = "correct"

// complaints are what analysistest has to say of testdata.
type complaints []string

// Errorf adds a complaint.
func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

// checked has run each rule on its package of testdata.
type checked struct {
	complaints complaints
	correct    []*packages.Package // with and without its tests
}

// check loads all packages of testdata, once for all tests, because loading the standard library
// takes seconds. It checks the packages of single rules, and only loads the one that all rules look
// at.
var check = sync.OnceValue(func() (c checked) {
	byPackage := make(map[string]*analysis.Analyzer)
	required := make(map[*analysis.Analyzer]bool)
	for _, rule := range rules.All() {
		byPackage[rule.Name] = rule
		for _, r := range rule.Requires {
			required[r] = true
		}
	}
	each := &analysis.Analyzer{
		Name:     "each",
		Doc:      "run each rule on the package of its name",
		Requires: slices.Collect(maps.Keys(required)),
		Run: func(pass *analysis.Pass) (any, error) {
			rule := byPackage[base(pass.Pkg.Path())]
			if rule == nil {
				return nil, nil
			}
			as := *pass
			as.Analyzer = rule
			return rule.Run(&as)
		},
	}
	defer func() {
		if r := recover(); r != nil { // analysistest does not expect packages with errors
			c.complaints.Errorf("analysistest: %v", r)
		}
	}()
	paths := append(slices.Sorted(maps.Keys(byPackage)), correct)
	testdata := analysistest.TestData()
	for _, r := range analysistest.RunWithSuggestedFixes(&c.complaints, testdata, each, paths...) {
		if pkg := r.Action.Package; base(pkg.PkgPath) == correct {
			c.correct = append(c.correct, pkg)
		}
	}
	return c
})

// base returns the path of a package without what go list adds for its tests.
func base(path string) string {
	path, _, _ = strings.Cut(path, ".")
	return strings.TrimSuffix(path, "_test")
}

// Each rule has a package of its name in testdata, with its mistakes and what is none.
func TestEachRuleFindsItsMistakesAndNothingElse(t *testing.T) {
	t.Parallel()
	others := slices.Clone(check().complaints)
	for _, rule := range rules.All() {
		isOwn := func(complaint string) bool { return strings.Contains(complaint, rule.Name+"/") }
		own := slices.DeleteFunc(slices.Clone(others), func(c string) bool { return !isOwn(c) })
		others = slices.DeleteFunc(others, isOwn)
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			for _, complaint := range own {
				t.Error(complaint)
			}
		})
	}
	require.Empty(t, others)
}

func TestNothingIsFoundInCorrectCode(t *testing.T) {
	t.Parallel()
	loaded := check().correct
	require.NotEmpty(t, loaded)
	require.Zero(t, packages.PrintErrors(loaded))
	graph, err := checker.Analyze(rules.All(), loaded, nil)
	require.NoError(t, err)
	for _, root := range graph.Roots {
		require.NoError(t, root.Err)
		for _, d := range root.Diagnostics {
			t.Errorf("%v: %s: %s", root.Package.Fset.Position(d.Pos), root.Analyzer.Name, d.Message)
		}
	}
}
