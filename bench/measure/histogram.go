package measure

import (
	"math/bits"
	"time"
)

const (
	subBits = 8 // buckets of one power of two: 256, so a quantile is right within 0.4 %
	sub     = 1 << subBits
	// The last bucket holds everything from about nine minutes on.
	buckets = (39 - subBits + 1) * sub
)

// Histogram counts durations in buckets that are 0.4 % wide. Recording does not allocate, so that
// it can be done within what is measured. The zero value is empty. It is not safe for concurrent
// use: each goroutine has its own, and they are merged.
type Histogram struct {
	counts [buckets]uint32
	most   time.Duration
}

// Record counts d; a negative one is counted as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.most = max(h.most, d)
}

func bucketOf(d time.Duration) int {
	v := uint64(d)
	if v < sub {
		return int(v)
	}
	exponent := bits.Len64(v) - subBits - 1
	return min((exponent+1)*sub+int(v>>exponent)-sub, buckets-1)
}

// lowest returns the smallest duration of a bucket.
func lowest(bucket int) time.Duration {
	if bucket < sub {
		return time.Duration(bucket)
	}
	exponent := bucket/sub - 1
	return time.Duration((bucket%sub + sub) << exponent)
}

// Bars are the buckets that are not empty, as one process sends them to another.
type Bars struct {
	Bucket []int         `json:"bucket"`
	Count  []uint32      `json:"count"`
	Most   time.Duration `json:"most"`
}

// Bars returns what was recorded.
func (h *Histogram) Bars() Bars {
	b := Bars{Most: h.most}
	for i, n := range h.counts {
		if n > 0 {
			b.Bucket, b.Count = append(b.Bucket, i), append(b.Count, n)
		}
	}
	return b
}

// Add merges what was recorded elsewhere.
func (h *Histogram) Add(b Bars) {
	for i, bucket := range b.Bucket {
		h.counts[bucket] += b.Count[i]
	}
	h.most = max(h.most, b.Most)
}

// Count returns the number of recorded durations.
func (h *Histogram) Count() int {
	total := 0
	for _, n := range h.counts {
		total += int(n)
	}
	return total
}

// Max returns the longest recorded duration, exactly.
func (h *Histogram) Max() time.Duration { return h.most }

// Quantile returns the duration that a fraction q of all do not exceed: 0.5 is the median, 1 the
// longest. It returns 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	if q >= 1 {
		return h.most
	}
	rank, seen := rankOf(q, total), 0
	for i, n := range h.counts {
		seen += int(n)
		if seen > rank {
			return min(lowest(i), h.most)
		}
	}
	return h.most
}
