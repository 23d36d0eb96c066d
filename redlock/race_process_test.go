//go:build redis

package redlock_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func init() { processes["racer"] = racer }

// racer takes the lock on the nodes args[2:] args[0] times, and checks each time whether another
// process is inside, by the key "inside" of the server args[1].
func racer(args []string) error {
	times, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	guard, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: args[1:2]})
	if err != nil {
		return err
	}
	defer guard.Close()
	clients, closeAll, err := connect(args[2:])
	if err != nil {
		return err
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), 3*longWait)
	defer cancel()
	l := redlock.NewOn(name, atOnce, clients...)
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	longest := time.Duration(0)
	for range times {
		start := time.Now()
		err := rlock.Do(ctx, l, time.Minute, rlock.Watchdog, func(ctx context.Context) error {
			longest = max(longest, time.Since(start))
			enter := guard.B().Set().Key("inside").Value("1").Nx().Build()
			if err := guard.Do(ctx, enter).Error(); err != nil {
				return fmt.Errorf("another process is inside: %w", err)
			}
			return guard.Do(ctx, guard.B().Del().Key("inside").Build()).Error()
		})
		if err != nil {
			return err
		}
	}
	fmt.Println(longest)
	return nil
}

func TestTwoProcessesNeverBothHoldAndBothMakeProgress(t *testing.T) {
	t.Parallel()
	const times = 300
	servers, guard := startNodes(t, 5), redistest.Start(t)
	args := append([]string{strconv.Itoa(times), guard.Addr()}, addressesOf(servers)...)
	var racers [2]*process
	for i := range racers {
		racers[i] = startProcess(t, "racer", args...)
		require.Equal(t, "ready", racers[i].Line(t))
	}
	resetStats(t, servers)
	start := time.Now()
	for _, r := range racers {
		r.Tell(t, "go")
	}
	var waits []string
	for _, r := range racers {
		waits = append(waits, r.Line(t))
		r.Wait(t)
	}
	t.Logf("%d acquisitions in %v, the longest waits %s, %d commands each", 2*times,
		time.Since(start), strings.Join(waits, " and "), scriptCalls(t, servers)/(2*times))
	for _, text := range waits {
		longest, err := time.ParseDuration(text)
		require.NoError(t, err)
		require.Less(t, longest, longWait)
	}
	waitUntilFree(t, servers...)
}
