package plugin_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/require"

	_ "holdfast/cmd/holdfastvet/plugin"
)

// linter makes the linter as golangci-lint does.
func linter(t *testing.T, settings any) (register.LinterPlugin, error) {
	t.Helper()
	newLinter, err := register.GetPlugin("holdfast")
	require.NoError(t, err)
	return newLinter(settings)
}

func TestLinterHasAllRulesButThoseThatAreDisabled(t *testing.T) {
	t.Parallel()
	all, err := linter(t, nil)
	require.NoError(t, err)
	require.Equal(t, register.LoadModeTypesInfo, all.GetLoadMode())
	analyzers, err := all.BuildAnalyzers()
	require.NoError(t, err)
	require.Len(t, analyzers, 7)

	fewer, err := linter(t, map[string]any{"disable": []string{"undeferred", "earlydefer"}})
	require.NoError(t, err)
	analyzers, err = fewer.BuildAnalyzers()
	require.NoError(t, err)
	require.Len(t, analyzers, 5)
}

func TestLinterRefusesSettingsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, err := linter(t, map[string]any{"disable": []string{"undefered"}})
	require.ErrorContains(t, err, `unknown rule "undefered"`)
	_, err = linter(t, map[string]any{"enable": []string{"undeferred"}})
	require.Error(t, err)
}
