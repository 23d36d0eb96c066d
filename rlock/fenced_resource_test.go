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

func init() { processes["ledger keeper"] = keepLedger }

// keepLedger takes a fenced lock, and then writes to a resource as often as it is told to, without
// checking whether its hold is still valid, like a write that is on its way already. At last it
// prints the result of Unlock.
func keepLedger(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	lease, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := rlock.New(redis,
		rlock.Options{WatchdogLease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	hold, err := c.NewFencedLock("ledger").Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		return err
	}
	fmt.Println(hold.Token())
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() && orders.Text() == "write" {
		fmt.Println(hold.Token()) // this is the write: the resource is at the other end of the pipe
	}
	fmt.Println(errors.Is(hold.Unlock(context.Background()), rlock.ErrLost))
	return c.Close(context.Background())
}

func TestWriteOfAHolderThatWasStoppedBeyondItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	s := redistest.Start(t)
	var table ledger
	stopped := startProcess(t, "ledger keeper", s.Addr(), lease.String())
	// written returns the token of the next write of the process.
	written := func() (token int64) {
		_, err := fmt.Sscan(stopped.Line(t), &token)
		require.NoError(t, err)
		return token
	}
	token := written() // it writes when it holds the lock
	stopped.Tell(t, "write")
	require.NoError(t, table.write("by the first", written()))

	require.NoError(t, stopped.Signal(syscall.SIGSTOP))
	c := newClient(t, s, rlock.Options{})
	next := acquired(t, lockInBackground(t.Context(), c.NewFencedLock("ledger"), longLease))
	require.Greater(t, next.Token(), token)
	require.NoError(t, table.write("by the second", next.Token()))

	stopped.Tell(t, "write") // which it does first
	require.NoError(t, stopped.Signal(syscall.SIGCONT))
	late := written()
	require.Equal(t, token, late)
	require.ErrorIs(t, table.write("by the first, late", late), errStale)
	require.Equal(t, "by the second", table.entry)

	require.True(t, next.Valid())
	require.NoError(t, table.write("by the second again", next.Token()))
	stopped.Tell(t, "end")
	require.Equal(t, "true", stopped.Line(t), "its Unlock does not say that the lock was lost")
	stopped.Wait(t)
	require.Equal(t, next.Owner(), s.DoStrings(t, "HKEYS", "ledger")[0])
	unlock(t, next)
}

// A resource that does not know of the second holder yet cannot refuse a late write of the first.
// It refuses writes of the first once the second has begun.
func TestResourceTakesAnyTokenThatIsNotSmallerThanTheLargest(t *testing.T) {
	t.Parallel()
	var table ledger
	for _, write := range []struct {
		token   int64
		refused bool
	}{{1, false}, {1, false}, {3, false}, {2, true}, {3, false}, {1, true}, {7, false}} {
		err := table.write("entry", write.token)
		require.Equal(t, write.refused, errors.Is(err, errStale), "%d", write.token)
	}
}
