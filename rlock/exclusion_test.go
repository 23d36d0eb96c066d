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

// The counter is read and written in two commands: only the lock keeps increments from being lost.
func TestNoTwoHoldersAmong32GoroutinesIn3Processes(t *testing.T) {
	const (
		clients    = 3
		goroutines = 32
		rounds     = 10
	)
	s := redistest.Start(t)
	s.Do(t, "SET", "counter", "0")
	var started []*process
	for range clients {
		started = append(started, startProcess(t, "count", s.Addr(), strconv.Itoa(goroutines), strconv.Itoa(rounds)))
	}
	for _, p := range started {
		require.Equal(t, "ready", p.line(t))
	}
	for _, p := range started {
		p.tell(t, "go")
	}
	for _, p := range started {
		p.wait(t)
	}
	require.Equal(t, strconv.Itoa(clients*goroutines*rounds), s.DoString(t, "GET", "counter"))
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

// countInProcess increments a counter under a lock, as often in as many goroutines as the arguments say.
func countInProcess(args []string) error {
	goroutines, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	rounds, err := strconv.Atoi(args[2])
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
	for range goroutines {
		running.Go(func() {
			lock := client.NewLock("lock")
			for range rounds {
				if err := rlock.Do(ctx, lock, patience*3, rlock.Watchdog, func(ctx context.Context) error {
					return increment(ctx, counter)
				}); err != nil {
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
	return counter.Do(ctx, counter.B().Set().Key("counter").Value(strconv.FormatInt(n+1, 10)).Build()).Error()
}

func TestContextWithoutOwnerNeverReenters(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	hold := take(t, lock, rlock.Watchdog)
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, hold.Owner(), held.Owner)
}

func TestOwnersOfOneClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	takeWith(rlock.WithOwner(t.Context()), t, lock, rlock.Watchdog)
	_, err := lock.TryLock(rlock.WithOwner(t.Context()), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}

func TestOneOwnerOfTwoClientsIsTwoOwners(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	require.NotEqual(t, one.ID(), other.ID())
	ctx := rlock.WithOwner(t.Context())
	takeWith(ctx, t, one.NewLock("lock"), rlock.Watchdog)
	_, err := other.NewLock("lock").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}

// Two acquisitions of one owner at a time take their turns at its seat: the second becomes a level of the first.
func TestGoroutinesThatShareAnOwnerShareTheHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
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
	require.Equal(t, strconv.Itoa(goroutines), s.DoString(t, "HGET", "lock", holds[0].Owner()))
	for _, hold := range holds {
		unlock(t, hold)
	}
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}
