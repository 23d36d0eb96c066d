//go:build redis

package rlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func init() { processes["busy holder"] = holdBusily }

// holdBusily takes a lock and keeps working, checking Valid before each step, as code that writes
// under a lock should. When Valid is false it prints how late its context was.
func holdBusily(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	k := kindNamed(args[1])
	lease, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c, err := rlock.New(redis,
		rlock.Options{WatchdogLease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	hold, err := k.lock(c, k.name).Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		return err
	}
	ctx := hold.Context()
	fmt.Println("holding")

	// The time between two steps shows whether the process was stopped.
	last, resumed, valid := time.Now(), time.Now(), hold.Valid()
	for resumed.Sub(last) <= lease {
		last, resumed, valid = resumed, time.Now(), hold.Valid()
	}
	<-ctx.Done()
	fmt.Println(valid, time.Since(resumed), errors.Is(context.Cause(ctx), rlock.ErrLost))
	// Lives until it is told to end, so that only the end of its lease frees the lock.
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return c.Close(context.Background())
}

func TestStoppedProcessFindsItsHoldInvalidAtTheFirstCheck(t *testing.T) {
	const lease = 1500 * time.Millisecond
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		bestOf(t, 20*time.Millisecond, func() time.Duration {
			holder := startProcess(t, "busy holder", s.Addr(), k.name, lease.String())
			require.Equal(t, "holding", holder.Line(t))
			left := s.DoInt(t, "PTTL", k.name)
			eventually(t, func() bool {
				before := left
				left = s.DoInt(t, "PTTL", k.name)
				return left > before
			}, "a renewal")

			require.NoError(t, holder.Signal(syscall.SIGSTOP))
			stopped := time.Now()
			c := newClient(t, s, rlock.Options{})
			next := acquired(t, lockInBackground(t.Context(), k.contender(c, k.name), longLease))
			require.Less(t, time.Since(stopped), lease+promptly)
			<-time.After(time.Until(stopped.Add(lease * 3 / 2)))
			require.NoError(t, holder.Signal(syscall.SIGCONT))

			var valid, lost bool
			var late string
			_, err := fmt.Sscan(holder.Line(t), &valid, &late, &lost)
			require.NoError(t, err)
			require.False(t, valid, "Valid believed in a lease that was over")
			require.True(t, lost)
			require.True(t, next.Valid())
			require.Equal(t, k.contenderHash(next.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			unlock(t, next)
			holder.Tell(t, "end")
			holder.Wait(t)
			requireFree(t, s, k.name)
			contextLate, err := time.ParseDuration(late)
			require.NoError(t, err)
			return contextLate
		})
	})
}
