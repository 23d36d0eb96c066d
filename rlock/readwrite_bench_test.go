//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// BenchmarkReadWrite measures either mode with nothing in its way, to compare with
// BenchmarkLockUnlock.
func BenchmarkReadWrite(b *testing.B) {
	client := newClientOn(b, redistest.Start(b).Client(b), rlock.Options{})
	sides := map[string]func(name string) *rlock.Lock{
		"read":  func(name string) *rlock.Lock { return client.NewReadWriteLock(name).Read() },
		"write": func(name string) *rlock.Lock { return client.NewReadWriteLock(name).Write() },
	}
	for name, side := range sides {
		cycle := func(name string) func() {
			lock := side(name)
			return func() { lockAndUnlock(b, lock) }
		}
		b.Run(name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			once := cycle("lock")
			for b.Loop() {
				once()
			}
		})
		b.Run(name+"/64", func(b *testing.B) { inParallel(b, cycle) })
	}
}

// BenchmarkReadersOfOneLock has all readers under one name: each release looks through all readers.
func BenchmarkReadersOfOneLock(b *testing.B) {
	lock := newClientOn(b, redistest.Start(b).Client(b), rlock.Options{}).NewReadWriteLock("lock").
		Read()
	b.SetParallelism(32) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			lockAndUnlock(b, lock)
		}
	})
}

// BenchmarkWriterAmongReaders measures how long a writer waits among fifty readers that loop, by
// preference. An operation is a second of that.
func BenchmarkWriterAmongReaders(b *testing.B) {
	preferences := map[string]rlock.WriterPreference{
		"writers": rlock.PreferWriters, "nobody": rlock.PreferNobody,
	}
	for name, preference := range preferences {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := mix{readers: 50, writers: 1, clients: 4, reading: 20 * time.Millisecond,
					options: rlock.Options{WriterPreference: preference}}.run(b, time.Second)
				b.ReportMetric(float64(len(got.reads)), "reads")
				b.ReportMetric(float64(len(got.writes)), "writes")
				b.ReportMetric(float64(got.writes[len(got.writes)-1].Milliseconds()),
					"ms-longest-write-wait")
			}
		})
	}
}

func lockAndUnlock(b *testing.B, lock *rlock.Lock) {
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		b.Error(err)
		return
	}
	if err := hold.Unlock(context.Background()); err != nil {
		b.Error(err)
	}
}
