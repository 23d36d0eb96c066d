//go:build nightly

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/redistest"

	"github.com/stretchr/testify/require"
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
	Title   string
	Targets []struct{ Expr string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/dashboard.json")
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
	// On a busy machine a fault may have no effect, or Prometheus may miss it.
	missing := []string{"all"}
	for tries := 0; len(missing) > 0 && tries < 4; tries++ {
		t.Logf("after %v, all faults happen: missing is %v", time.Since(start), missing)
		s.fail(t, 75*time.Second)
		missing = prom.missing(t, timeRange{start, time.Second, int(time.Since(start) / time.Second)})
	}
	require.Empty(t, missing, "after %v", time.Since(start))
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
