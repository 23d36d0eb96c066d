package waitqueue

import (
	"strconv"
	"testing"
	"time"
)

// These benchmarks need no server: they measure the local queue and the hand-over within it.

func BenchmarkJoinAndLeave(b *testing.B) {
	for _, behind := range []int{0, 1000} {
		b.Run("behind "+strconv.Itoa(behind), func(b *testing.B) {
			qs := New[string, struct{}]()
			for range behind {
				qs.Join("order", "", 0, begin)
			}
			b.ReportAllocs()
			for b.Loop() {
				qs.Join("order", "client:1", time.Second, begin).Leave(false, false)
			}
		})
	}
}

// BenchmarkOfferAndSettle measures one hand-over within a process: a release is offered to the head
// of the queue, and settled, and the successor leaves with the lock.
func BenchmarkOfferAndSettle(b *testing.B) {
	for _, registers := range []bool{false, true} {
		b.Run("registers "+strconv.FormatBool(registers), func(b *testing.B) {
			qs := New[string, struct{}]()
			qs.Join("order", "client:0", time.Second, begin)
			b.ReportAllocs()
			for b.Loop() {
				qs.Join("order", "client:1", time.Second, begin)
				o := qs.Offer("order", Streak{}, registers)
				o.Settle(Release{Outcome: ToSuccessor, Sent: time.Now()})
				o.Successor.Leave(true, false)
			}
		})
	}
}
