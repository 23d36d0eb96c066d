package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

const (
	dashboardFile = "../../docs/monitoring/dashboard.json"
	alertsFile    = "../../docs/monitoring/alerts.yaml"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// dashboard is what the test reads of a dashboard of Grafana.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []target
}

type target struct {
	Expr, LegendFormat string
	Datasource         struct{ UID string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// query fills in the variables of an expression as Grafana does. within is the time that the
// dashboard shows.
func query(expr string, within time.Duration) string {
	return strings.NewReplacer("$__rate_interval", "10s",
		"$__range", fmt.Sprintf("%.0fs", math.Ceil(within.Seconds())),
		"$job", ".*", "$server", ".*", "$kind", ".*").Replace(expr)
}

// TestDashboardAndAlertsShowFaults runs a service while things fail. Then each query of the
// dashboard must have data, and each alert must have fired.
func TestDashboardAndAlertsShowFaults(t *testing.T) {
	t.Parallel()
	length := locktest.Length(t, "HOLDFAST_DASHBOARD_TIME", 75*time.Second)
	s := startService(t, "web-1", "web-2", "worker")
	var names []string
	for _, p := range s.processes {
		names = append(names, p.name)
	}
	prom := startPrometheus(t, shortened(t), s.address, "shop", names)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); s.running.Wait() })
	for _, p := range s.processes {
		p.work(ctx)
	}

	start := time.Now()
	episodes := s.fail(t, length)
	run := func() timeRange {
		step := max(time.Second, length.Truncate(time.Second)/300)
		return timeRange{start, step, int(time.Since(start) / step)}
	}
	// On a busy machine a fault may have no effect, or Prometheus may miss it.
	missing := prom.missing(t, run())
	for again := 0; len(missing) > 0 && again < 3; again++ {
		t.Logf("after %v, all faults happen again: %v", time.Since(start), missing)
		s.fail(t, 75*time.Second)
		missing = prom.missing(t, run())
	}
	require.Empty(t, missing, "after %v", time.Since(start))
	if dir := os.Getenv("HOLDFAST_PICTURES"); dir != "" {
		draw(t, dir+"/faults.svg", prom, run(), episodes)
	}
}

// missing returns the queries without data in a run, and the alerts that did not fire.
func (p *prometheus) missing(t *testing.T, run timeRange) (missing []string) {
	t.Helper()
	within := run.step * time.Duration(run.steps)
	d := readDashboard(t)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		call := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
		require.NotNil(t, call, v.Definition)
		values := p.labelValues(t, query(call[1], within), call[2])
		if len(values) == 0 {
			missing = append(missing, v.Definition)
		}
		if kinds := []string{"fair", "fenced", "multilock", "non-reentrant", "read", "redlock",
			"reentrant", "write"}; v.Name == "kind" && !slices.Equal(kinds, values) {
			missing = append(missing, fmt.Sprintf("kinds other than %v", values))
		}
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			if !slices.ContainsFunc(p.queryRange(t, query(target.Expr, within), run), series.hasData) {
				missing = append(missing, panel.Title+": "+target.Expr)
			}
		}
	}
	for alert := range alerts(t) {
		firing := fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, alert)
		if len(p.queryRange(t, firing, run)) == 0 {
			missing = append(missing, "alert "+alert)
		}
	}
	return missing
}

// hasData reports whether a point is neither 0 nor missing.
func (s series) hasData() bool {
	return slices.ContainsFunc(s.points, func(v float64) bool { return v > 0 })
}

// shortened returns the rules with minutes as seconds, so that a short run is long enough for them.
func shortened(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	return regexp.MustCompile(`(\d)m\b`).ReplaceAllString(string(text), "${1}s")
}

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

// TestPanelsExplainThemselves reads the dashboard as a user sees it.
func TestPanelsExplainThemselves(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	variables := map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	seen, metrics := map[any]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		require.NotContains(t, seen, p.ID)
		seen[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Less(t, x, 24, p.Title)
				require.NotContains(t, seen, [2]int{x, y}, p.Title)
				seen[[2]int{x, y}] = true
			}
		}
		if p.Type == "row" {
			continue
		}
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.Regexp(t, `^[A-Za-z].*\.$`, p.Description, p.Title)
		for _, target := range p.Targets {
			require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				require.Contains(t, variables, v[1], p.Title)
			}
			for _, m := range regexp.MustCompile(`\w+\{`).FindAllString(target.Expr, -1) {
				metrics[strings.TrimSuffix(m, "{")] = true
			}
		}
	}
	// All that holdfast/otel measures is shown.
	for _, m := range []string{"lock_acquire_duration_seconds_bucket",
		"lock_hold_duration_seconds_bucket", "lock_held", "lock_waiting", "lock_lost_total",
		"lock_renewal_failures_total", "lock_handovers_total", "lock_deadline_margin_seconds_bucket",
		"lock_lease_utilization_bucket", "redlock_round_duration_seconds_bucket",
		"redlock_node_failures_total"} {
		require.Contains(t, metrics, "holdfast_"+m)
	}
}
