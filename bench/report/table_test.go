package report_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/bench/contest"
	"holdfast/bench/report"
)

func sample() *report.Table {
	return &report.Table{
		Scenario: "some", Title: "Some", About: "What it is.", Floor: "raw",
		Columns: []report.Column{{Key: "rate", Head: "per second", Unit: report.Count, Ratio: true},
			{Key: "p99", Head: "p99", Unit: report.Duration}},
		Rows: []*report.Row{
			{Name: "raw", Part: contest.Floor,
				Rounds: []report.Figures{{"rate": 1000, "p99": 1500}, {"rate": 2000},
					{"rate": 4000}}},
			{Name: "holdfast", Part: contest.Ours,
				Rounds: []report.Figures{{"rate": 900}, {"rate": 2000}, {"rate": 5000}}},
			{Name: "other", Part: contest.Other,
				Rounds: []report.Figures{{"rate": 700}, {"rate": 800}, {"rate": 900}}},
			{Name: "quick other", Part: contest.Other, Broken: true,
				Rounds: []report.Figures{{"rate": 9000}}, Problems: []string{"3 updates lost"}},
		},
	}
}

func TestRatiosAreMediansOfTheRatiosOfEachRound(t *testing.T) {
	table := sample()
	require.InDelta(t, 1, table.Ratio("holdfast", "raw", "rate"), 1e-9)
	require.InDelta(t, 0.4, table.Ratio("other", "raw", "rate"), 1e-9)
	require.True(t, math.IsNaN(table.Ratio("nobody", "raw", "rate")))
	require.True(t, math.IsNaN(table.Ratio("other", "raw", "p99")))
}

func TestBrokenRowsHaveNoFiguresAndAreNeverBest(t *testing.T) {
	table := sample()
	require.True(t, math.IsNaN(table.Figure("quick other", "rate")))
	require.Equal(t, "other", table.Best("rate", func(*report.Row) bool { return true }))
	require.Contains(t, table.Text(), "BROKEN")
	require.Contains(t, table.Text(), "quick other: 3 updates lost.")
}

func TestTextIsAnAlignedMarkdownTable(t *testing.T) {
	table := sample()
	table.Rows = table.Rows[:2]
	table.AtLeast(">= 0.95 x", table.Ratio("holdfast", "raw", "rate"), 0.95, report.Ratio)
	table.AtMost("p99 <= 1 us", table.Figure("holdfast", "p99"), 1000, report.Duration)
	require.Equal(t, "### Some (`some`)\n\nWhat it is.\n\n"+
		"| contestant | per second | x floor |    p99 |\n"+
		"| ---------- | ---------: | ------: | -----: |\n"+
		"| raw        |      2,000 |  1.00 x | 1.5 us |\n"+
		"| holdfast   |      2,000 |  1.00 x |      - |\n"+
		"\n"+
		"| scenario | goal        | measured | met |\n"+
		"| -------- | ----------- | -------: | --- |\n"+
		"| some     | >= 0.95 x   |   1.00 x | yes |\n"+
		"| some     | p99 <= 1 us |        - | no  |\n", table.Text())
	unmet, all := report.Unmet([]*report.Table{table})
	require.Equal(t, 1, unmet)
	require.Equal(t, 2, all)
}

func TestGoalsWithoutMeasurementAreNotMetAndCanBeWrittenAsJSON(t *testing.T) {
	for _, g := range []report.Goal{{Got: math.NaN(), Most: true}, {Got: math.NaN()}} {
		require.False(t, g.Met())
		raw, err := json.Marshal(g)
		require.NoError(t, err)
		require.Contains(t, string(raw), `"got":null`)
	}
}

func TestFiguresAreWrittenInTheirUnits(t *testing.T) {
	for _, c := range []struct {
		unit report.Unit
		v    float64
		want string
	}{
		{report.Duration, 950, "0.9 us"}, {report.Duration, 48_300, "48.3 us"},
		{report.Duration, 2.5e6, "2.50 ms"}, {report.Duration, 5.4e9, "5.40 s"},
		{report.Count, 999, "999"}, {report.Count, 12_345_678, "12,345,678"},
		{report.Count, -1234, "-1,234"}, {report.Count, -123, "-123"},
		{report.Decimal, 2.004, "2.00"}, {report.Ratio, 0.957, "0.96 x"},
		{report.Ratio, 299.6, "300 x"},
		{report.Bytes, 4096, "4.0 KiB"}, {report.Bytes, 3 << 20, "3.0 MiB"},
		{report.Decimal, math.NaN(), "-"},
	} {
		require.Equal(t, c.want, c.unit.Format(c.v))
	}
}
