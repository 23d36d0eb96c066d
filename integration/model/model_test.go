//go:build model

package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
)

// models has the names of all models. HandOverSteps is not one: it names the steps of HandOver.
var models = func() (names []string) {
	paths, _ := filepath.Glob(filepath.Join(folder, "*.tla"))
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".tla")
		if !strings.HasSuffix(name, "Steps") {
			names = append(names, name)
		}
	}
	return names
}()

// fewestRules is how many rules all models must have together.
const fewestRules = 100

const (
	tableBegin = "<!-- table: written by TestModelsHold -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// The table in README.md has the sizes of all models. To write it:
//
//	HOLDFAST_UPDATE=1 make model
func TestModelsHold(t *testing.T) {
	readme := filepath.Join(folder, "README.md")
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	var mu sync.Mutex
	rows := map[string]string{} // as they are, for configurations that are left out
	for row := range strings.Lines(string(text)) {
		if parts := strings.Split(row, "`"); len(parts) > 1 && strings.HasSuffix(parts[1], ".cfg") {
			rows[parts[1]] = row
		}
	}
	t.Run("all", func(t *testing.T) {
		for _, m := range models {
			for _, path := range configurations(m) {
				name := filepath.Base(path)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					cfg, err := os.ReadFile(path)
					require.NoError(t, err)
					r := tlc(t, long, m, string(cfg))
					require.False(t, r.broken, r.output)
					require.Contains(t, r.output, "No error has been found")
					t.Logf("%s: %d states, diameter %d", name, r.distinct, r.depth)
					mu.Lock()
					defer mu.Unlock()
					rows[name] = fmt.Sprintf("| `%s` | %s | %d | %d |\n", name,
						strings.Join(properties(string(cfg)), ", "), r.distinct, r.depth)
				})
			}
		}
	})
	table := "| configuration | holds | states | diameter |\n|---|---|---|---|\n"
	for _, m := range models {
		for _, path := range configurations(m) {
			table += rows[filepath.Base(path)]
		}
	}
	doctable.Require(t, readme, tableBegin, tableEnd, table, "make model")
}

// Each rule is needed: without it there is the counterexample that its comment describes.
func TestEveryRuleIsNeeded(t *testing.T) {
	count := 0
	for _, m := range models {
		all, err := rules(m)
		require.NoError(t, err)
		count += len(all)
		var names []string
		for _, r := range all {
			names = append(names, r.name)
		}
		slices.Sort(names)
		used, err := guarded(m)
		require.NoError(t, err)
		require.Equal(t, used, names, "%s: each rule that is used has a comment", m)
		for _, r := range all {
			t.Run(m+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				cfg, err := r.without()
				require.NoError(t, err)
				found := tlc(t, quick, m, cfg)
				r.requireBroken(t, found)
			})
		}
	}
	require.GreaterOrEqual(t, count, fewestRules)
}

// What breaks without a rule holds with it: it is the rule that matters, not the constants that its
// comment changes.
func TestRulesSufficeWhereTheirLackShows(t *testing.T) {
	for _, m := range models {
		all, err := rules(m)
		require.NoError(t, err)
		for _, r := range all {
			if len(r.with) == 0 {
				continue // TestModelsHold has checked it
			}
			t.Run(m+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				cfg, err := r.obeyed()
				require.NoError(t, err)
				began := time.Now()
				found := tlc(t, long, m, cfg)
				require.False(t, found.broken, "%s does not hold with %s: %v", r.breaks, r.name, found.actions)
				t.Logf("%d states in %v", found.distinct, time.Since(began))
			})
		}
	}
}
