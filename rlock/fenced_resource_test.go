package rlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

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
