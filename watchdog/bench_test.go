package watchdog

import (
	"testing"
	"time"
)

// BenchmarkAddRemove measures the share of a watched Lock and Unlock here, beside leases that stay.
func BenchmarkAddRemove(b *testing.B) {
	for _, bench := range []struct {
		name string
		held int
	}{{"alone", 0}, {"next to 10000", 10_000}} {
		b.Run(bench.name, func(b *testing.B) {
			w := New(Options{Lease: 30 * time.Second, Renew: (&store{}).renew})
			defer w.Close()
			for range bench.held {
				w.Add(&Lease{}, Deadline(time.Now(), w.options.Lease), true)
			}
			deadline := Deadline(time.Now(), w.options.Lease)
			b.ReportAllocs()
			for b.Loop() {
				l := new(Lease) // the one allocation
				w.Add(l, deadline, true)
				w.Remove(l)
			}
		})
	}
}

func BenchmarkDeadline(b *testing.B) {
	w := New(Options{Lease: 30 * time.Second, Renew: (&store{}).renew})
	defer w.Close()
	l := &Lease{}
	w.Add(l, Deadline(time.Now(), w.options.Lease), false)
	for b.Loop() {
		_ = l.Deadline()
	}
}
