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
			qs := New[string, struct{}](hash)
			for range behind {
				qs.Join("order", Candidate{}, begin)
			}
			b.ReportAllocs()
			for b.Loop() {
				candidate := Candidate{Owner: "client:1", Lease: time.Second}
				qs.Join("order", candidate, begin).Leave(false)
			}
		})
	}
}

// BenchmarkOfferAndSettle measures one hand-over within a process: a release is offered to the head
// of the queue, and settled, and the successor leaves with the lock.
func BenchmarkOfferAndSettle(b *testing.B) {
	for _, registers := range []bool{false, true} {
		b.Run("registers "+strconv.FormatBool(registers), func(b *testing.B) {
			qs := New[string, struct{}](hash)
			qs.Join("order", Candidate{Owner: "client:0", Lease: time.Second}, begin)
			b.ReportAllocs()
			for b.Loop() {
				qs.Join("order", Candidate{Owner: "client:1", Lease: time.Second}, begin)
				o := qs.Offer("order", Streak{}, registers)
				o.Settle(Release{Outcome: ToSuccessor, Sent: time.Now()})
				o.successor.Acquire()
				o.successor.Leave(false)
			}
		})
	}
}
