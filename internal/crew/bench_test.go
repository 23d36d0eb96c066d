package crew_test

import (
	"testing"
	"time"

	"holdfast/internal/crew"
)

func goroutine(f func()) bool {
	go f()
	return true
}

// What a call costs that finds a free worker, from Do to the answer, beside a goroutine without a crew. The one allocation
// is the Call.
func BenchmarkAnsweredCall(b *testing.B) {
	answered := make(chan struct{})
	run := func() { answered <- struct{}{} }
	b.Run("crew", func(b *testing.B) {
		w := crew.New(goroutine)
		b.ReportAllocs()
		for b.Loop() {
			w.Do(&crew.Call{Task: crew.Func(run), Patience: time.Second})
			<-answered
		}
	})
	b.Run("goroutine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			goroutine(run)
			<-answered
		}
	})
}

// What a call costs that nobody waits for, made by all processors at once.
func BenchmarkParallelDo(b *testing.B) {
	w := crew.New(goroutine)
	run := func() {}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Do(&crew.Call{Task: crew.Func(run), Patience: time.Second})
		}
	})
}

// What a call costs that comes to a server that hangs, with many others in line, and is withdrawn.
func BenchmarkWithdrawnCall(b *testing.B) {
	w := crew.New(goroutine)
	answer := make(chan struct{})
	b.Cleanup(func() { close(answer) })
	hang := func() { <-answer }
	for range 10 * crew.Workers {
		w.Do(&crew.Call{Task: crew.Func(hang), Patience: time.Second})
	}
	b.ReportAllocs()
	for b.Loop() {
		c := &crew.Call{Task: crew.Func(hang), Patience: time.Second}
		w.Do(c)
		w.Stalled()
		w.Withdraw(c)
	}
}
