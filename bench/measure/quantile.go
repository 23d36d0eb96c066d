package measure

import (
	"math"
	"slices"
)

// rankOf returns the index of a quantile among n sorted values: the nearest rank.
func rankOf(q float64, n int) int {
	return min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)
}

// Quantile returns the smallest of the values that a fraction q of them do not exceed. It returns 0
// without values. The order of values is left alone.
func Quantile[T int | int64 | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[rankOf(q, len(sorted))]
}

// Median returns the middle value, or the mean of the two in the middle. NaN values do not count;
// without others it returns NaN.
func Median(values []float64) float64 {
	sorted := slices.DeleteFunc(slices.Sorted(slices.Values(values)), math.IsNaN)
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
