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

// holdBusily takes a lock and works on, asking Valid before each step, as code should that writes under a lock. When it is
// told no it says how late its context was.
func holdBusily(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	lease, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := rlock.New(redis, rlock.Options{WatchdogLease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	hold, err := c.NewLock("order").Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		return err
	}
	ctx := hold.Context()
	fmt.Println("holding")

	// Whether the process was stopped shows in the time that passes between two steps.
	last, resumed, valid := time.Now(), time.Now(), hold.Valid()
	for resumed.Sub(last) <= lease {
		last, resumed, valid = resumed, time.Now(), hold.Valid()
	}
	<-ctx.Done()
	fmt.Println(valid, time.Since(resumed), errors.Is(context.Cause(ctx), rlock.ErrLost))
	// Until it is told to end, so that the lock is passed on by its lease alone.
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return c.Close(context.Background())
}

func TestStoppedProcessFindsItsHoldInvalidAtTheFirstLook(t *testing.T) {
	const lease = 300 * time.Millisecond
	bestOf(t, 20*time.Millisecond, func() time.Duration {
		s := redistest.Start(t)
		holder := startProcess(t, "busy holder", s.Addr(), lease.String())
		require.Equal(t, "holding", holder.line(t))
		// It is kept for longer than a lease, so a renewal has happened.
		require.Never(t, func() bool { return absent(s, "order") }, lease+lease/2, 10*time.Millisecond)

		require.NoError(t, holder.Signal(syscall.SIGSTOP))
		stopped := time.Now()
		c := newClient(t, s, rlock.Options{})
		next := acquired(t, lockInBackground(t.Context(), c.NewLock("order"), longLease))
		require.Less(t, time.Since(stopped), lease+promptly)
		<-time.After(time.Until(stopped.Add(2 * lease)))
		require.NoError(t, holder.Signal(syscall.SIGCONT))

		var valid, lost bool
		var late string
		_, err := fmt.Sscan(holder.line(t), &valid, &late, &lost)
		require.NoError(t, err)
		require.False(t, valid, "Valid believed in a lease that was over")
		require.True(t, lost)
		require.True(t, next.Valid())
		require.Equal(t, map[string]string{next.Owner(): "1"}, s.DoMap(t, "HGETALL", "order"))
		unlock(t, next)
		holder.tell(t, "end")
		holder.wait(t)
		contextLate, err := time.ParseDuration(late)
		require.NoError(t, err)
		return contextLate
	})
}
