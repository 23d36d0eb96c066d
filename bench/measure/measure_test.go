package measure_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/measure"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	values := []int{50, 10, 40, 20, 30}
	for q, want := range map[float64]int{0: 10, 0.2: 10, 0.21: 20, 0.5: 30, 0.99: 50, 1: 50} {
		require.Equal(t, want, measure.Quantile(values, q), "q = %v", q)
	}
	require.Equal(t, []int{50, 10, 40, 20, 30}, values, "the values were reordered")
	require.Zero(t, measure.Quantile([]float64{}, 0.5))
}

func TestHistogramKeepsQuantilesWithinHalfAPercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h measure.Histogram
	var exact []int64
	for range 20_000 {
		d := time.Duration(math.Exp(random.Float64() * 23)) // from 1 ns to 10 s, log-uniform
		h.Record(d)
		exact = append(exact, int64(d))
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := measure.Quantile(exact, q)
		require.InEpsilon(t, want, int64(h.Quantile(q)), 0.005, "q = %v", q)
	}
	require.Equal(t, 20_000, h.Count())
	require.Equal(t, measure.Quantile(exact, 1), int64(h.Max()))
}

func TestHistogramsMerge(t *testing.T) {
	var all, first, second, merged measure.Histogram
	for i := range 1000 {
		d := time.Duration(i) * time.Microsecond
		all.Record(d)
		if i%3 == 0 {
			first.Record(d)
		} else {
			second.Record(d)
		}
	}
	merged.Add(first.Bars())
	merged.Add(second.Bars())
	require.Equal(t, all, merged)
}
