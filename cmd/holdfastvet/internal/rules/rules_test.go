package rules_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"holdfast/cmd/holdfastvet/internal/rules"
)

// Each rule has a package of its name in testdata, with its mistakes and what is none.
func TestEachRuleFindsItsMistakesAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, rule := range rules.All() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), rule, rule.Name)
		})
	}
}
