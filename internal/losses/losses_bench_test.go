package losses_test

import (
	"strconv"
	"testing"

	"holdfast/internal/losses"
)

// BenchmarkForget measures what each acquisition pays while others have lost locks.
func BenchmarkForget(b *testing.B) {
	for _, lost := range []int{0, 1, losses.Most} {
		b.Run(strconv.Itoa(lost)+" losses", func(b *testing.B) {
			var m losses.Memory[string, int]
			for i := range lost {
				m.Add("lock:"+strconv.Itoa(i), i)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.Forget("another")
				}
			})
		})
	}
}
