package rlock_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func init() { processes["count"] = countInProcess }

// readersPerWriter is how many goroutines there are for each one that writes, when the lock is for
// readers.
const readersPerWriter = 4

// countInProcess increments a counter under a lock of a kind. Its arguments say how often, and in
// how many goroutines.
func countInProcess(args []string) error {
	k := kindNamed(args[1])
	goroutines, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	rounds, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	option := rueidis.ClientOption{InitAddress: []string{args[0]}}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer redis.Close()
	counter, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer counter.Close()
	client, err := rlock.New(redis, rlock.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer func() { _ = client.Close(ctx) }()

	fmt.Println("ready")
	if _, err := fmt.Scanln(new(string)); err != nil {
		return err
	}
	failures := make(chan error, goroutines)
	var running sync.WaitGroup
	for i := range goroutines {
		running.Go(func() {
			lock, work := k.contender(client, k.name), increment
			if k.shared && i%readersPerWriter != 0 {
				lock, work = k.lock(client, k.name), lookOn
			}
			for range rounds {
				count := func(ctx context.Context) error { return work(ctx, counter) }
				if err := rlock.Do(ctx, lock, longWait*3, rlock.Watchdog, count); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	running.Wait()
	close(failures)
	return <-failures
}

func increment(ctx context.Context, counter rueidis.Client) error {
	n, err := counter.Do(ctx, counter.B().Get().Key("counter").Build()).AsInt64()
	if err != nil {
		return err
	}
	return counter.Do(ctx, counter.B().Set().Key("counter").Value(strconv.FormatInt(n+1, 10)).Build()).
		Error()
}

// lookOn reads long enough to see a writer that should not be there.
func lookOn(ctx context.Context, counter rueidis.Client) error {
	first := int64(-1)
	for range 10 {
		n, err := counter.Do(ctx, counter.B().Get().Key("counter").Build()).AsInt64()
		if err != nil {
			return err
		}
		if first == -1 {
			first = n
		}
		if n != first {
			return fmt.Errorf("a writer counted from %d to %d during a read", first, n)
		}
	}
	return nil
}

func TestContextWithoutOwnerNeverReenters(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		lock := k.lock(client, k.name)
		hold := take(t, lock, rlock.Watchdog)
		_, err := k.contender(client, k.name).TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, hold.Owner(), held.Owner)
		if k.shared {
			require.NotEqual(t, hold.Owner(), take(t, lock, rlock.Watchdog).Owner(),
				"a hold of its own")
			require.Equal(t, "1", k.levels(t, s, k.name, hold.Owner()))
		}
	})
}

func TestOwnersOfOneClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		takeWith(rlock.WithOwner(t.Context()), t, k.lock(client, k.name), rlock.Watchdog)
		contender := k.contender(client, k.name)
		_, err := contender.TryLock(rlock.WithOwner(t.Context()), rlock.NoWait, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	})
}

func TestOneOwnerOfTwoClientsIsTwoOwners(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		one, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		require.NotEqual(t, one.ID(), other.ID())
		ctx := rlock.WithOwner(t.Context())
		takeWith(ctx, t, k.lock(one, k.name), rlock.Watchdog)
		_, err := k.contender(other, k.name).TryLock(ctx, rlock.NoWait, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	})
}

// Two simultaneous acquisitions of one owner lock its session one after the other: the second
// becomes a level of the first.
func TestGoroutinesThatShareAnOwnerShareTheHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ctx := rlock.WithOwner(t.Context())
		const goroutines = 8
		var acquisitions []<-chan outcome
		for range goroutines {
			acquisitions = append(acquisitions, lockInBackground(ctx, lock, rlock.Watchdog))
		}
		var holds []*rlock.Hold
		for _, done := range acquisitions {
			holds = append(holds, acquired(t, done))
		}
		require.Equal(t, k.hash(holds[0].Owner(), goroutines), s.DoMap(t, "HGETALL", k.name))
		for _, hold := range holds {
			require.Equal(t, holds[0].Token(), hold.Token())
			unlock(t, hold)
		}
		requireFree(t, s, k.name)
	})
}
