//go:build redis

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests are about many readers and writers of one lock. HOLDFAST_MIX_TIME makes them longer.

// distributions has the numbers of clients over which the callers of a test are spread.
var distributions = map[string]int{"of one client": 1, "of four clients": 4}

// pairsOn returns a read-write lock of each of as many new clients.
func pairsOn(
	t testing.TB, s *redistest.Server, clients int, options rlock.Options,
) []*rlock.ReadWriteLock {
	t.Helper()
	pairs := make([]*rlock.ReadWriteLock, clients)
	for i := range pairs {
		pairs[i] = newClient(t, s, options).NewReadWriteLock("page")
	}
	return pairs
}

// letReadersIn parks readers behind a writer, on demand with a second one waiting. It returns how
// long after the writer's release the last reader is in.
func letReadersIn(t testing.TB, clients int, secondWriter bool) time.Duration {
	t.Helper()
	const readers = 20
	s := redistest.Start(t)
	pairs := pairsOn(t, s, clients, rlock.Options{})
	elsewhere := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	unlock(t, take(t, elsewhere.Read(), time.Minute)) // loads the scripts
	writer := take(t, elsewhere.Write(), time.Minute)
	var waiting []<-chan outcome
	for i := range readers {
		waiting = append(waiting,
			lockInBackground(t.Context(), pairs[i%clients].Read(), time.Minute))
	}
	for _, pair := range pairs {
		eventually(t, func() bool { return rlock.Waiting(pair.Read()) == readers/clients },
			"all wait")
	}
	parked, second := clients, (<-chan outcome)(nil)
	if secondWriter {
		second = lockInBackground(t.Context(),
			newClient(t, s, rlock.Options{}).NewReadWriteLock("page").Write(), time.Minute)
		parked++
	}
	waitForParked(t, s, parked)
	waitForQuiet(t, s)
	in, leave := make(chan outcome, readers), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(leave) })
	var all sync.WaitGroup
	t.Cleanup(func() { // before the clients close
		letGo()
		all.Wait()
	})
	for _, reader := range waiting {
		all.Go(func() {
			o := <-reader
			in <- o
			<-leave
			if o.Err == nil {
				assert.NoError(t, o.Hold.Unlock(context.Background()))
			}
		})
	}
	if secondWriter {
		all.Go(func() {
			if o := <-second; assert.NoError(t, o.Err) {
				assert.NoError(t, o.Hold.Unlock(context.Background()))
			}
		})
	}
	released := time.Now()
	unlock(t, writer)
	// On a slow machine the readers' turn may end before all are in, and then the second writer is
	// next.
	defer time.AfterFunc(time.Second, letGo).Stop()
	last := released
	for range readers {
		o := result(t, in)
		require.NoError(t, o.Err)
		if o.At.After(last) {
			last = o.At
		}
	}
	letGo()
	all.Wait()
	return last.Sub(released)
}

func TestReadersBehindAWriterAreAllInWithin50MillisecondsOfItsRelease(t *testing.T) {
	for name, clients := range distributions {
		for also, second := range map[string]bool{"": false, "before a second writer": true} {
			t.Run(strings.TrimSpace(name+" "+also), func(t *testing.T) {
				bestOf(t, 50*time.Millisecond, func() time.Duration {
					took := letReadersIn(t, clients, second)
					t.Logf("20 readers were in %v after the release", took)
					return took
				})
			})
		}
	}
}

// mix is a load of readers and writers that acquire the lock, keep it for a while, and come back at
// once. With fifty readers of 20 ms each there is always one.
type mix struct {
	readers, writers, clients int
	reading                   time.Duration
	options                   rlock.Options
}

// waits has how long each acquisition of a mix took, the shortest first.
type waits struct{ reads, writes []time.Duration }

func (m mix) run(t testing.TB, length time.Duration) waits {
	t.Helper()
	s := redistest.Start(t)
	pairs := pairsOn(t, s, m.clients, m.options)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		result waits // guarded by mu
	)
	for i := range m.readers + m.writers {
		lock, took, rest := pairs[i%m.clients].Read(), &result.reads, m.reading
		if i >= m.readers {
			lock, took, rest = pairs[i%m.clients].Write(), &result.writes, time.Millisecond
		}
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				// A waiter at the end is let in, or starvation would not be seen.
				hold, err := lock.TryLock(context.Background(), longWait, rlock.Watchdog)
				mu.Lock()
				*took = append(*took, time.Since(began))
				mu.Unlock()
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				pause(ctx.Done(), rest)
				if err := hold.Unlock(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(result.reads)
	slices.Sort(result.writes)
	t.Logf("%d readers: %s; %d writers: %s", m.readers, summary(result.reads), m.writers,
		summary(result.writes))
	return result
}

// summary returns the number of waits, the median and the longest.
func summary(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	middle, longest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	return fmt.Sprintf("%d times, after %v, at most %v", len(sorted), middle, longest)
}

// mixTime returns how long a mix runs.
func mixTime(t testing.TB) time.Duration {
	t.Helper()
	return locktest.Length(t, "HOLDFAST_MIX_TIME", 1500*time.Millisecond)
}

func TestWriterGetsInAmongFiftyReadersThatLoop(t *testing.T) {
	for name, clients := range distributions {
		t.Run(name, func(t *testing.T) {
			bestOf(t, time.Second, func() time.Duration {
				got := mix{
					readers: 50,
					writers: 1,
					clients: clients,
					reading: 20 * time.Millisecond,
				}.run(t, mixTime(t))
				require.NotEmpty(t, got.writes)
				require.Greater(t, len(got.reads), 50, "readers starve")
				return slices.Max(got.writes)
			})
		})
	}
}

func TestReadersProgressAmongFourWritersThatLoop(t *testing.T) {
	for name, clients := range distributions {
		t.Run(name, func(t *testing.T) {
			bestOf(t, time.Second, func() time.Duration {
				got := mix{
					readers: 20,
					writers: 4,
					clients: clients,
					reading: 2 * time.Millisecond,
				}.run(t, mixTime(t))
				require.Greater(t, len(got.reads), 40)
				require.Greater(t, len(got.writes), 4)
				return slices.Max(got.reads) // writers have no order among themselves
			})
		})
	}
}
