package rules_test

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"holdfast/cmd/holdfastvet/internal/rules"
)

// finds is what all rules find in the corpora, by package.
var finds = sync.OnceValues(func() (map[string][]string, error) {
	loaded := check().corpora
	if n := packages.PrintErrors(loaded); n > 0 {
		return nil, fmt.Errorf("%d errors in testdata", n)
	}
	graph, err := checker.Analyze(rules.All(), loaded, nil)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]string)
	for _, root := range graph.Roots {
		if root.Err != nil {
			return nil, root.Err
		}
		pkg := base(root.Package.PkgPath)
		if found[pkg] == nil {
			found[pkg] = []string{}
		}
		for _, d := range root.Diagnostics {
			at := place(root.Package.Fset.Position(d.Pos), root.Analyzer.Name)
			if !slices.Contains(found[pkg], at) { // a package with tests comes twice
				found[pkg] = append(found[pkg], at)
			}
		}
	}
	return found, nil
})

// find returns what all rules find in a package of testdata, as "file:line: rule".
func find(t *testing.T, pkg string) []string {
	t.Helper()
	found, err := finds()
	require.NoError(t, err)
	require.Contains(t, found, pkg)
	return found[pkg]
}

// place names a finding.
func place(at token.Position, rule string) string {
	return fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, rule)
}

// seeded returns the mistakes that the comments of a package of testdata name.
func seeded(t *testing.T, pkg string) (marked []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "src", pkg, "*.go"))
	require.NoError(t, err)
	mark := regexp.MustCompile(`// mistake: (\w+)$`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(content), "\n") {
			if m := mark.FindStringSubmatch(line); m != nil {
				marked = append(marked, place(token.Position{Filename: file, Line: i + 1}, m[1]))
			}
		}
	}
	return marked
}

func TestEverySeededMistakeIsFoundAndNothingElse(t *testing.T) {
	t.Parallel()
	want := seeded(t, "mistakes")
	require.Len(t, want, 52)
	for _, rule := range rules.All() {
		n := 0
		for _, at := range want {
			if strings.HasSuffix(at, ": "+rule.Name) {
				n++
			}
		}
		require.GreaterOrEqual(t, n, 5, rule.Name)
	}
	require.ElementsMatch(t, want, find(t, "mistakes"))
}

func TestNothingIsFoundInCorrectCode(t *testing.T) {
	t.Parallel()
	require.Empty(t, find(t, "correct"))
}
