package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Unit is how a figure is written.
type Unit string

// The units.
const (
	Duration Unit = "duration" // in nanoseconds
	Count    Unit = "count"    // whole, with separators
	Decimal  Unit = "decimal"  // with two places
	Ratio    Unit = "ratio"
	Bytes    Unit = "bytes"
)

// Format returns a figure as text, or a dash if it was not measured.
func (u Unit) Format(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	switch u {
	case Duration:
		return formatDuration(time.Duration(v))
	case Count:
		return separated(int64(math.Round(v)))
	case Ratio:
		if v >= 100 {
			return fmt.Sprintf("%.0f x", v)
		}
		return fmt.Sprintf("%.2f x", v)
	case Bytes:
		if v >= 1<<20 {
			return fmt.Sprintf("%.1f MiB", v/(1<<20))
		}
		return fmt.Sprintf("%.1f KiB", v/(1<<10))
	default:
		if v >= 1000 {
			return separated(int64(math.Round(v)))
		}
		return fmt.Sprintf("%.2f", v)
	}
}

func formatDuration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.1f us", d.Seconds()*1e6)
	}
}

func separated(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
