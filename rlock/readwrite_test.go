package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// readKey returns the key of a read hold of a lock whose name has no braces.
func readKey(lock, owner string, number int) string {
	return "{" + lock + "}:" + owner + ":rwlock_timeout:" + strconv.Itoa(number)
}

func TestReadersOfAllClientsShareTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, d := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	first := take(t, c.NewReadWriteLock("page").Read(), time.Minute)
	second := take(t, c.NewReadWriteLock("page").Read(), rlock.Watchdog)
	third := take(t, d.NewReadWriteLock("page").Read(), 2*time.Minute)
	nested := takeWith(third.Context(), t, d.NewReadWriteLock("page").Read(), time.Minute)
	require.Equal(
		t,
		map[string]string{
			"mode": "read", first.Owner(): "1", second.Owner(): "1", third.Owner(): "2",
		},
		s.DoMap(t, "HGETALL", "page"),
	)
	require.ElementsMatch(
		t,
		[]string{"page", readKey("page", first.Owner(), 1), readKey("page", second.Owner(), 1),
			readKey("page", third.Owner(), 1), readKey("page", third.Owner(), 2)},
		s.Keys(t),
	)

	info, err := c.NewReadWriteLock("page").Read().Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{first.Owner(): 1, second.Owner(): 1, third.Owner(): 2},
		info.Readers)
	for _, client := range []*rlock.Client{c, d} {
		_, err := client.NewReadWriteLock("page").
			Write().
			TryLock(t.Context(), rlock.NoWait, time.Minute)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Contains(t, info.Readers, held.Owner)
		require.False(t, held.Next)
	}
	for _, hold := range []*rlock.Hold{third, first, second, nested} {
		unlock(t, hold)
	}
	require.Empty(t, s.Keys(t))
}

func TestOwnerThatReadsIsRefusedTheWriteLockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
	ctx, cancel := context.WithTimeout(t.Context(), longWait)
	defer cancel()
	owner := rlock.WithOwner(ctx)
	hold := takeWith(owner, t, lock.Read(), time.Minute)
	before := s.DoMap(t, "HGETALL", "page")
	monitor := s.Monitor(t)
	for _, attempt := range []func() (*rlock.Hold, error){
		func() (*rlock.Hold, error) { return lock.Write().Lock(owner, time.Minute) },
		func() (*rlock.Hold, error) { return lock.Write().TryLock(owner, time.Minute, time.Minute) },
		func() (*rlock.Hold, error) { return lock.Write().TryLock(owner, rlock.NoWait, time.Minute) },
	} {
		_, err := attempt()
		require.ErrorIs(t, err, rlock.ErrUpgrade)
		require.ErrorIs(t, err, rlock.ErrNotAcquired, "like tryLock in Java")
	}
	require.Empty(t, monitor.Commands(t), "there is nothing to ask Redis")
	require.Equal(t, before, s.DoMap(t, "HGETALL", "page"))
	unlock(t, hold)
	unlock(t, takeWith(owner, t, lock.Write(), time.Minute))
}

func TestWritersReleaseLetsAllReadersInWhereverTheyWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var clients []*rlock.Client
	for range 3 {
		clients = append(clients, newClient(t, s, rlock.Options{}))
	}
	writer := take(t, clients[0].NewReadWriteLock("page").Write(), time.Minute)
	var readers []<-chan outcome
	for i := range 12 {
		readers = append(
			readers,
			lockInBackground(t.Context(), clients[i%3].NewReadWriteLock("page").Read(),
				time.Minute),
		)
	}
	for i := range clients {
		eventually(t,
			func() bool { return rlock.Waiting(clients[i].NewReadWriteLock("page").Read()) == 4 },
			"all wait")
	}
	waitForParked(t, s, 3)
	released := time.Now()
	unlock(t, writer)
	var holds []*rlock.Hold
	for _, reader := range readers {
		o := result(t, reader)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(released), promptly)
		holds = append(holds, o.Hold) // and keep it
	}
	for _, hold := range holds {
		unlock(t, hold)
	}
}

func TestLastReadersReleaseLetsAWriterInAtOnce(t *testing.T) {
	for _, where := range []string{"in the same client", "in another client"} {
		t.Run(where, func(t *testing.T) {
			bestOf(t, promptly, func() time.Duration {
				s := redistest.Start(t)
				c, waiting := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
				if where == "in the same client" {
					waiting = c
				}
				lock := c.NewReadWriteLock("page")
				first, last := take(t, lock.Read(), time.Minute), take(t, lock.Read(), time.Minute)
				writers := []<-chan outcome{}
				for range 2 {
					writers = append(
						writers,
						lockInBackground(t.Context(), waiting.NewReadWriteLock("page").Write(),
							time.Minute),
					)
				}
				eventually(
					t,
					func() bool { return rlock.Waiting(waiting.NewReadWriteLock("page").Write()) == 2 },
					"both wait",
				)
				waitForParked(t, s, 1)
				unlock(t, first)
				<-time.After(50 * time.Millisecond)
				require.Empty(t, writers[0])
				require.Empty(t, writers[1])
				released := time.Now()
				unlock(t, last)
				eventually(t, func() bool { return len(writers[0])+len(writers[1]) == 1 },
					"no writer was woken")
				took := time.Since(released)
				for range writers { // the second follows the first
					select {
					case o := <-writers[0]:
						unlock(t, o.Hold)
						writers[0] = nil
					case o := <-writers[1]:
						unlock(t, o.Hold)
						writers[1] = nil
					case <-time.After(longWait):
						require.FailNow(t, "the second writer was not woken")
					}
				}
				return took
			})
		})
	}
}

func TestReleasedReadLevelNeverShortensTheOther(t *testing.T) {
	t.Parallel()
	for name, outerFirst := range map[string]bool{"outer first": true, "inner first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			lock := newClient(t, s, rlock.Options{}).NewReadWriteLock("page")
			outer := take(t, lock.Read(), time.Minute)
			inner := takeWith(outer.Context(), t, lock.Read(), time.Hour)
			leaves, stays := outer, inner
			if !outerFirst {
				leaves, stays = inner, outer
			}
			unlock(t, leaves)
			require.True(t, stays.Valid())
			require.Greater(t, time.Until(stays.Deadline()), 50*time.Minute)
			require.Greater(t, s.DoInt(t, "PTTL", readKey("page", stays.Owner(), 1)),
				(50 * time.Minute).Milliseconds(),
				"Redis must keep it as long as this client trusts it")
			require.Greater(t, s.DoInt(t, "PTTL", "page"), (50 * time.Minute).Milliseconds())
			unlock(t, stays)
			require.Empty(t, s.Keys(t))
		})
	}
}

func TestReadersAndWritersNeverHoldTheLockTogether(t *testing.T) {
	t.Parallel()
	preferences := map[string]rlock.WriterPreference{
		"writers first": rlock.PreferWriters, "nobody first": rlock.PreferNobody,
	}
	for name, preference := range preferences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			var readers, writers, together atomic.Int64
			var all sync.WaitGroup
			options := rlock.Options{WriterPreference: preference}
			clients := []*rlock.Client{newClient(t, s, options), newClient(t, s, options)}
			for i := range 12 {
				lock := clients[i%2].NewReadWriteLock("page")
				all.Go(func() {
					for j := range 25 {
						side, mine, theirs := lock.Read(), &readers, &writers
						if (i+j)%4 == 0 {
							side, mine, theirs = lock.Write(), &writers, &readers
						}
						hold, err := side.Lock(t.Context(), rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						n := mine.Add(1)
						<-time.After(200 * time.Microsecond) // the work
						if theirs.Load() > 0 || mine == &writers && n > 1 {
							together.Add(1)
						}
						mine.Add(-1)
						if err := hold.Unlock(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			require.Zero(t, together.Load())
			waitUntilFree(t, s, "page")
		})
	}
}
