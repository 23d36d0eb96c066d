package report_test

import (
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
