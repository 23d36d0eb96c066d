//go:build redis

package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// BenchmarkFloor measures the floor of a lock and an unlock: the same two scripts without a client
// around them. Compare the others with it in the same run.
func BenchmarkFloor(b *testing.B) {
	redis := redistest.Start(b).Client(b)
	cycle := floor(b, redis)
	b.Run("1", func(b *testing.B) {
		once := cycle("lock")
		for b.Loop() {
			once()
		}
	})
	b.Run("64", func(b *testing.B) { inParallel(b, cycle) })
}

func BenchmarkLockUnlock(b *testing.B) {
	redis := redistest.Start(b).Client(b)
	client := newClientOn(b, redis, rlock.Options{})
	cancellable, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	for _, of := range []struct {
		name string
		ctx  context.Context
	}{{"background", context.Background()}, {"cancellable", cancellable}} {
		cycle := lockUnlock(of.ctx, b, client)
		b.Run(of.name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			once := cycle("lock")
			for b.Loop() {
				once()
			}
		})
		b.Run(of.name+"/64", func(b *testing.B) {
			b.ReportAllocs()
			inParallel(b, cycle)
		})
	}
}

// BenchmarkContended measures a hand-over within a process: all goroutines want the same lock.
func BenchmarkContended(b *testing.B) {
	client := newClientOn(b, redistest.Start(b).Client(b), rlock.Options{})
	cycle := lockUnlock(context.Background(), b, client)
	b.SetParallelism(32) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		once := cycle("lock")
		for pb.Next() {
			once()
		}
	})
}

// floor returns cycles of bare scripts that take and release a lock.
func floor(b *testing.B, redis rueidis.Client) func(name string) func() {
	ctx := context.Background()
	return func(name string) func() {
		return func() {
			lock := lua.NewExclusive(name, false)
			_, _, holder, err := lock.Acquire(ctx, redis, "owner:1", 30*time.Second, "")
			if err != nil || holder != nil {
				b.Error(holder, err)
			}
			_, err = lock.Release(ctx, redis, "owner:1", 0, lua.HandOver{})
			if err != nil {
				b.Error(err)
			}
		}
	}
}

func lockUnlock(ctx context.Context, b *testing.B, client *rlock.Client) func(name string) func() {
	return func(name string) func() {
		lock := client.NewLock(name)
		return func() {
			hold, err := lock.Lock(ctx, rlock.Watchdog)
			if err != nil {
				b.Error(err)
				return
			}
			if err := hold.Unlock(ctx); err != nil {
				b.Error(err)
			}
		}
	}
}

// inParallel runs cycle in at least 64 goroutines with a key each.
func inParallel(b *testing.B, cycle func(name string) func()) {
	keys := make(chan string, 1024)
	for i := range cap(keys) {
		keys <- "lock:" + strconv.Itoa(i)
	}
	b.SetParallelism(32) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		once := cycle(<-keys)
		for pb.Next() {
			once()
		}
	})
}
