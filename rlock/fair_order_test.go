//go:build redis

package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func init() { processes["fair waiters"] = waitFairly }

// waitFairly waits for the fair lock "job" once for each line that it reads, each in a goroutine. A
// waiter that gets the lock appends the line, and its name in Redis, to the list "served", and
// releases the lock.
func waitFairly(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	c, err := rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ctx := context.Background()
	// Like a service that has been up for a while, it is connected, and the server knows the
	// scripts.
	for range 20 {
		hold, err := c.NewFairLock("before").Lock(ctx, longLease)
		if err != nil {
			return err
		}
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
	}
	fmt.Println("ready")

	serve := func(line string) error {
		hold, err := c.NewFairLock("job").Lock(ctx, longLease)
		if err != nil {
			return err
		}
		served := redis.B().Rpush().Key("served").Element(line + " " + hold.Owner()).Build()
		if err := redis.Do(ctx, served).Error(); err != nil {
			return err
		}
		return hold.Unlock(ctx)
	}
	var waiters sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		waiters.Go(func() {
			if err := serve(line); err != nil {
				fmt.Fprintf(os.Stderr, "waiter %s: %v\n", line, err)
			}
		})
	}
	waiters.Wait()
	return c.Close(ctx)
}

// startFairWaiters starts processes that are ready to wait.
func startFairWaiters(t *testing.T, s *redistest.Server, n int) []*process {
	t.Helper()
	started := make([]*process, n)
	for i := range started {
		started[i] = startProcess(t, "fair waiters", s.Addr())
	}
	for _, p := range started {
		require.Equal(t, "ready", p.Line(t))
	}
	return started
}

// length returns the length of the queue.
func length(t *testing.T, redis rueidis.Client) int64 {
	t.Helper()
	n, err := redis.Do(t.Context(), redis.B().Llen().Key(fairQueue).Build()).AsInt64()
	require.NoError(t, err)
	return n
}

// fairRuns returns how often the order is tested. With HOLDFAST_FAIR_RUNS it is measured that
// often, on an idle machine, where a process reads what it is told within 5 ms. Otherwise a waiter
// is started only after the previous one is queued, however busy the machine is.
func fairRuns(t *testing.T) (runs int, measured bool) {
	text := os.Getenv("HOLDFAST_FAIR_RUNS")
	if text == "" {
		return 3, false
	}
	runs, err := strconv.Atoi(text)
	require.NoError(t, err)
	return runs, true
}

func TestWaitersOfFourProcessesAcquireAFairLockInTheOrderInWhichTheyWereStarted(t *testing.T) {
	t.Parallel()
	const waiters, apart = 64, 5 * time.Millisecond
	runs, measured := fairRuns(t)
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			s := redistest.Start(t)
			from := startFairWaiters(t, s, 4)
			look := s.Client(t)
			hold := take(t, newClient(t, s, rlock.Options{}).NewFairLock("job"), longLease)
			for i := range waiters {
				<-time.After(apart)
				from[i%len(from)].Tell(t, strconv.Itoa(i))
				if !measured {
					eventually(t, func() bool { return length(t, look) > int64(i) },
						"the waiter is in the queue")
				}
			}
			queued := waitForFairQueue(t, s, waiters)
			unlock(t, hold)
			for _, p := range from {
				require.NoError(t, p.Stdin.Close())
				p.Wait(t)
			}
			var numbers, owners, started []string
			for _, served := range s.DoStrings(t, "LRANGE", "served", "0", "-1") {
				number, owner, _ := strings.Cut(served, " ")
				numbers, owners = append(numbers, number), append(owners, owner)
			}
			for i := range waiters {
				started = append(started, strconv.Itoa(i))
			}
			require.Equal(t, queued, owners, "not in the order of the queue")
			require.Equal(t, started, numbers, "not in the order of the start")
		})
	}
}

// fairDelay releases the lock to s's waiters, the last of which belongs to the test, and returns
// how long the test had to wait for it.
func fairDelay(t *testing.T, hold *rlock.Hold, mine <-chan outcome) time.Duration {
	t.Helper()
	freed := time.Now()
	unlock(t, hold)
	select {
	case o := <-mine:
		require.NoError(t, o.Err)
		unlock(t, o.Hold)
	case <-time.After(time.Minute):
		require.FailNow(t, "still waiting")
	}
	return time.Since(freed)
}

// queueBehind queues n waiters of p, and then one of the test's own, whose outcome it returns.
func queueBehind(
	t *testing.T, s *redistest.Server, lock *rlock.Lock, p *process, n int,
) <-chan outcome {
	t.Helper()
	for i := range n {
		p.Tell(t, strconv.Itoa(i))
		waitForFairQueue(t, s, i+1)
	}
	mine := lockInBackground(t.Context(), lock, longLease)
	waitForFairQueue(t, s, n+1)
	return mine
}

func TestKilledProcessDelaysAFairLockBySeconds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	p := startFairWaiters(t, s, 1)[0]
	hold := take(t, lock, longLease)
	mine := queueBehind(t, s, lock, p, 10)
	require.NoError(t, p.Kill()) // for the server its connections may outlast the release
	delay := fairDelay(t, hold, mine)
	t.Log("delayed by", delay)
	// Half a second for the turn of the first, and 5 s until the last looks by itself if the server
	// did not know yet that the others were dead. Each of ten turns would cost half a second more.
	require.Less(t, delay, 10*time.Second)
	require.Zero(t, s.DoInt(t, "EXISTS", "job", fairQueue, fairScores, fairTurn))
}

func TestStoppedWaiterDelaysAFairLockByLessThanTwentySeconds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	p := startFairWaiters(t, s, 1)[0]
	hold := take(t, lock, longLease)
	mine := queueBehind(t, s, lock, p, 1)
	// Its connections stay open: for the server it listens.
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	delay := fairDelay(t, hold, mine)
	t.Log("delayed by", delay)
	// 10 s for a waiter that listens and does not ask. Its place would stay for five minutes.
	require.Less(t, delay, 20*time.Second)
	require.Zero(t, s.DoInt(t, "EXISTS", "served"))

	// It lost only its place.
	require.NoError(t, p.Signal(syscall.SIGCONT))
	eventually(t, func() bool { return s.DoInt(t, "LLEN", "served") == 1 }, "it was not served")
	require.NoError(t, p.Stdin.Close())
	p.Wait(t)
}
