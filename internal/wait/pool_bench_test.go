package wait_test

import (
	"testing"
	"time"

	"holdfast/internal/wait"
)

func goroutine(f func()) bool {
	go f()
	return true
}

// BenchmarkAnsweredCall measures a call that finds a free worker, from Do to the reply, beside a
// goroutine without a pool. The one allocation is the Call.
func BenchmarkAnsweredCall(b *testing.B) {
	answered := make(chan struct{})
	run := func() { answered <- struct{}{} }
	b.Run("pool", func(b *testing.B) {
		w := wait.NewPool(goroutine)
		b.ReportAllocs()
		for b.Loop() {
			w.Do(&wait.Job{Runner: wait.Func(run), Timeout: time.Second})
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

// BenchmarkParallelDo measures calls without waiting callers, made by all processors at once.
func BenchmarkParallelDo(b *testing.B) {
	w := wait.NewPool(goroutine)
	run := func() {}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Do(&wait.Job{Runner: wait.Func(run), Timeout: time.Second})
		}
	})
}

// BenchmarkWithdrawnCall measures a call to a server that hangs, with many queued, that is
// withdrawn.
func BenchmarkWithdrawnCall(b *testing.B) {
	w := wait.NewPool(goroutine)
	answer := make(chan struct{})
	b.Cleanup(func() { close(answer) })
	hang := func() { <-answer }
	for range 10 * wait.Workers {
		w.Do(&wait.Job{Runner: wait.Func(hang), Timeout: time.Second})
	}
	b.ReportAllocs()
	for b.Loop() {
		c := &wait.Job{Runner: wait.Func(hang), Timeout: time.Second}
		w.Do(c)
		w.Stalled()
		w.Withdraw(c)
	}
}
