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

// alert is what documents say of an alert too.
type alert struct{ after, severity, runbook string }

// alerts returns the alerts by their names.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	text := read(t, alertsFile)
	found := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?(?:for: (\d+)m\n\s+)?labels:\n`+
		`\s+severity: (\w+)\n.*?runbook_url: (\S+)\n`).FindAllStringSubmatch(text, -1)
	require.Len(t, found, strings.Count(text, "- alert: "))
	all := map[string]alert{}
	for _, f := range found {
		all[f[1]] = alert{after: f[2], severity: f[3], runbook: f[4]}
	}
	return all
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
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
	tests := read(t, strings.Replace(alertsFile, ".yaml", "_test.yaml", 1))
	for name := range alerts(t) {
		require.Contains(t, tests, "alertname: "+name)
	}
}

// TestMonitoringListsEachAlert requires a row with severity, delay and runbook for each alert.
func TestMonitoringListsEachAlert(t *testing.T) {
	t.Parallel()
	monitoring, runbooks := read(t, "../../docs/monitoring.md"), read(t, "../../docs/runbooks.md")
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(runbooks, -1) {
		sections["docs/runbooks.md#"+strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	for name, a := range alerts(t) {
		require.True(t, sections[a.runbook], a.runbook)
		require.Contains(t, runbooks, "`"+name+"`")
		_, row, found := strings.Cut(monitoring, "| ["+name+"]("+strings.TrimPrefix(a.runbook, "docs/")+
			") | "+a.severity+" | ")
		require.True(t, found, "%s: %+v", name, a)
		fires, _, _ := strings.Cut(row, " | ")
		if a.after != "" {
			require.Contains(t, fires, ", for "+a.after+" min")
		}
	}
	require.Len(t, alerts(t), strings.Count(monitoring, "| [Holdfast"))
	rules := strings.Join(strings.Fields(read(t, alertsFile)), " ")
	for rule, words := range map[string]string{
		"> 10 + 2 * ( sum":         "more than 10 + 2 × the previous hour's average",
		"outcome=\"failed\"}[3m])": "3 min after the last failure",
		"> 0.05":                   "over 5 % of the calls",
		"0.01 * sum":               "failures over 1 % of the rounds",
		")) > 0.9":                 "under 0.1 of the lease left",
	} {
		require.Contains(t, rules, rule)
		require.Contains(t, monitoring, words)
	}
}

// TestMonitoringListsEachMetric compares the names with those of the source.
func TestMonitoringListsEachMetric(t *testing.T) {
	t.Parallel()
	names := func(file, pattern string) (all []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			all = append(all, found[1])
		}
		require.NotEmpty(t, all)
		return all
	}
	made := names("../instruments.go", `"holdfast\.([a-z.]+)"`)
	row := "(?m)^\\| `((?:lock|redlock)\\.[a-z.]+)` "
	require.ElementsMatch(t, made, names("../../docs/monitoring.md", row))
	require.ElementsMatch(t, made, names("../doc.go", `(?m)^//\tholdfast\.([a-z.]+) `))
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
