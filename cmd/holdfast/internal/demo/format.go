package demo

import (
	"math"
	"strconv"
	"time"
)

// brief formats a duration with the digits that matter: 0.9 ms, 12 ms, 0.91 s, 1.5 s, 28.5 s, 30 s.
func brief(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d == 0:
		return "0 s"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 99.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 9_995:
		return seconds(ms, 100)
	default:
		return seconds(ms, 10)
	}
}

// seconds formats seconds, rounded to 1/scale, without zeros at the end.
func seconds(ms, scale float64) string {
	return strconv.FormatFloat(math.Round(ms/1000*scale)/scale, 'f', -1, 64) + " s"
}
