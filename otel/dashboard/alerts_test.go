package dashboard

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const alertsFile = "../../docs/monitoring/alerts.yaml"

// alerts returns the alerts, each with its runbook_url.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook_url: (\S+)\n`).
		FindAllStringSubmatch(string(text), -1)
	require.Len(t, found, strings.Count(string(text), "- alert: "))
	urls := map[string]string{}
	for _, f := range found {
		urls[f[1]] = f[2]
	}
	return urls
}

// TestAlertRulesPassTheirTests runs alerts_test.yaml, which has tests for each alert.
func TestAlertRulesPassTheirTests(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", alertsFile},
		{"test", "rules", strings.Replace(alertsFile, ".yaml", "_test.yaml", 1)},
	} {
		output, err := exec.CommandContext(t.Context(), program(t, "promtool"), arguments...).
			CombinedOutput()
		require.NoError(t, err, "%v: %s", arguments, output)
	}
	tests, err := os.ReadFile(strings.Replace(alertsFile, ".yaml", "_test.yaml", 1))
	require.NoError(t, err)
	for alert := range alerts(t) {
		require.Contains(t, string(tests), "alertname: "+alert)
	}
}

// TestAlertsLinkToTheirSections finds a heading in docs/operations.md for each alert.
func TestAlertsLinkToTheirSections(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for alert, url := range alerts(t) {
		require.Equal(t, "docs/operations.md#"+strings.ToLower(alert), url)
		require.Regexp(t, `(?m)^#+ `+alert+`$`, string(document))
	}
}

// program returns the path of prometheus or promtool: on PATH, or where ensure-prometheus.sh puts
// them.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs("../../.tools/prometheus/" + name)
	require.NoError(t, err)
	require.FileExists(t, path, "run otel/dashboard/ensure-prometheus.sh: there is no "+name)
	return path
}
