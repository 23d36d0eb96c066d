//go:build redis

package rlock_test

import (
	"bufio"
	"context"
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

// These tests are about locks that are granted to a process that is stopped, or dead.

// In watchdog mode a grant gets a tenth of the lease. With promptly it is less than the 5 s after
// which a waiter asks that was not told of it.
const (
	watchdogLease = 10 * time.Second
	grantLease    = watchdogLease / 10
)

func init() { processes["given"] = waitToBeGiven }

// waitToBeGiven waits for a lock in watchdog mode, with the lease args[2]. When it holds the lock
// it prints whether it may be trusted, and releases it when it is told to.
func waitToBeGiven(args []string) error {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{args[0]}})
	if err != nil {
		return err
	}
	defer redis.Close()
	lease, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c, err := rlock.New(redis,
		rlock.Options{WatchdogLease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	k := kindNamed(args[1])
	hold, err := k.lock(c, k.name).Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		return err
	}
	fmt.Println(hold.Owner(), hold.Valid())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if err := hold.Unlock(context.Background()); err != nil {
		return err
	}
	return c.Close(context.Background())
}

// startGiven starts such a process, and returns when it is registered as the n-th.
func startGiven(t *testing.T, s *redistest.Server, k kind, lease time.Duration, n int) *process {
	t.Helper()
	p := startProcess(t, "given", s.Addr(), k.name, lease.String())
	eventually(t, func() bool { return registrations(s, k.name) == n },
		"the process is not registered")
	return p
}

// stop stops a process, and returns when none of its threads runs.
func stop(t *testing.T, p *process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

// From outside one cannot see that it is stopped: its connection still takes messages. Another
// waiter is told how short the lease is.
func TestGrantToAStoppedProcessCostsAShortLease(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{
		"one that comes later": false, "one that waits already": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, givenAway(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
				stopped := startGiven(t, s, k, watchdogLease, 1)
				c := newClient(t, s, rlock.Options{})
				var next <-chan outcome
				if waits {
					next = registers(t, s, 2, k.lock(c, k.name), rlock.Watchdog)
				}
				waitForQuiet(t, s)
				stop(t, stopped)
				released := time.Now()
				unlock(t, first)
				given := holderOf(t, s, k.name)
				require.NotEqual(t, c.ID(), given)
				if next == nil {
					next = lockInBackground(t.Context(), k.lock(c, k.name), rlock.Watchdog)
				}
				o := result(t, next)
				require.NoError(t, o.Err)
				require.Greater(t, o.At.Sub(released), grantLease*9/10)
				require.Less(t, o.At.Sub(released), grantLease+promptly)

				// it reads that it holds the lock
				require.NoError(t, stopped.Signal(syscall.SIGCONT))
				eventually(t, func() bool { return registrations(s, k.name) == 1 },
					"it does not ask again")
				require.True(t, o.Hold.Valid())
				require.Equal(t, k.hash(o.Hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
				unlock(t, o.Hold)
				require.Regexp(t, "^"+given+":[0-9]+ true$", stopped.Line(t))
				stopped.Tell(t, "unlock")
				stopped.Wait(t)
				requireFree(t, s, k.name)
			})
		})
	}
}

// The server has noticed that its connections ended, and the script learns so.
func TestKilledProcessIsSkippedAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		var killed []*process
		for i := range 3 {
			// What it was granted it would have for longer than promptly.
			killed = append(killed, startGiven(t, s, k, 10*watchdogLease, i+1))
		}
		next := registers(t, s, 4, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		for _, p := range killed {
			require.NoError(t, p.Kill())
		}
		waitForListeners(t, s, k.name, 1)
		require.Equal(t, 4, registrations(s, k.name))
		released := time.Now()
		unlock(t, first)
		o := result(t, next)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(released), promptly)
		require.Zero(t, registrations(s, k.name))
		unlock(t, o.Hold)
		requireFree(t, s, k.name)
	})
}

// It is granted the lock, and dies before it reads the message.
func TestProcessKilledWithItsGrantCostsAShortLease(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		first := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		p := startGiven(t, s, k, watchdogLease, 1)
		waitForQuiet(t, s)
		stop(t, p)
		released := time.Now()
		unlock(t, first)
		require.NotEmpty(t, holderOf(t, s, k.name))
		require.NoError(t, p.Kill())
		o := result(t, lockInBackground(t.Context(),
			k.lock(newClient(t, s, rlock.Options{}), k.name), longLease))
		require.NoError(t, o.Err)
		require.Greater(t, o.At.Sub(released), grantLease*9/10)
		require.Less(t, o.At.Sub(released), grantLease+promptly)
		unlock(t, o.Hold)
	})
}
