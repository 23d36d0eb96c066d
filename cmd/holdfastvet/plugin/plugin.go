// Package plugin makes the rules of holdfastvet a linter of golangci-lint, called holdfast: see
// docs/vet.md.
package plugin

import (
	"fmt"
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"holdfast/cmd/holdfastvet/internal/rules"
)

func init() { register.Plugin("holdfast", New) }

// Settings are the settings of the linter in golangci-lint's configuration.
type Settings struct {
	// Disable names the rules that are not to run.
	Disable []string `json:"disable"`
}

// New returns the linter. It refuses settings that it does not know, and names of rules that do
// not exist.
func New(settings any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](settings)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Disable {
		if !slices.ContainsFunc(rules.All(), func(a *analysis.Analyzer) bool { return a.Name == name }) {
			return nil, fmt.Errorf("holdfast: unknown rule %q in the setting disable; check the name", name)
		}
	}
	return &linter{disabled: s.Disable}, nil
}

// linter is the linter with its settings.
type linter struct {
	disabled []string
}

// BuildAnalyzers returns the rules that are not disabled.
func (l *linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return slices.DeleteFunc(rules.All(), func(a *analysis.Analyzer) bool {
		return slices.Contains(l.disabled, a.Name)
	}), nil
}

// GetLoadMode says that the rules need types.
func (l *linter) GetLoadMode() string { return register.LoadModeTypesInfo }
