package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/bench/report"
)

func TestPlotsShowHowTheyWereMade(t *testing.T) {
	table := sample()
	table.Plots = []report.Plot{
		{File: "rates", Title: "Rates", Keys: []string{"rate"}, Label: "ratio"},
		{File: "logarithmic", Title: "Rates", Keys: []string{"rate", "p99"}, Label: "ratio",
			Log: true},
		{File: "empty", Title: "Nothing", Keys: []string{"nothing"}},
	}
	result := &report.Result{Tables: []*report.Table{table},
		Machine: report.ThisMachine("7.0.15", "make bench", 3)}
	dir := filepath.Join(t.TempDir(), "plots")
	require.NoError(t, result.Plot(dir))
	for _, file := range []string{"rates.svg", "logarithmic.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Contains(t, string(svg), "make bench")
		require.Contains(t, string(svg), "Redis 7.0.15")
		require.Contains(t, string(svg), "holdfast")
		require.NotContains(t, string(svg), "quick other",
			"its lock let two holders in, so it has no figures")
	}
	require.NoFileExists(t, filepath.Join(dir, "empty.svg"))
}
