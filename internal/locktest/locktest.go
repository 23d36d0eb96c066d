// Package locktest acquires, waits for and releases locks in tests, and starts client processes for
// them. It serves the tests of the packages above rlock, and those of package rlock_test. Tests
// inside package rlock cannot import it, because it imports rlock.
package locktest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
	"holdfast/rlock"
)

// Timeout is how long a test waits for what must happen soon, on a machine that may be busy.
const Timeout = 10 * time.Second

// CloseClient closes c, which must not take longer than Timeout. While rueidis is blocked, one call
// of Close waits for half of that at most.
func CloseClient(t testing.TB, c *rlock.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	err := c.Close(ctx)
	for err != nil && ctx.Err() == nil {
		err = c.Close(ctx)
	}
	require.NoError(t, err)
}

// Acquire acquires a lock that is free.
func Acquire(t testing.TB, l rlock.Locker, lease rlock.Lease) *rlock.Hold {
	t.Helper()
	return AcquireWith(t.Context(), t, l, lease)
}

// AcquireWith acquires, with a given context, a lock that is free or held by the context's owner.
func AcquireWith(
	ctx context.Context, t testing.TB, l rlock.Locker, lease rlock.Lease,
) *rlock.Hold {
	t.Helper()
	hold, err := l.TryLock(ctx, rlock.NoWait, lease)
	require.NoError(t, err)
	return hold
}

// Unlock releases a hold, which must succeed.
func Unlock(t testing.TB, h *rlock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock())
}

// Outcome is the result of an acquisition, and when it came.
type Outcome struct {
	Hold *rlock.Hold
	Err  error
	At   time.Time
}

// InBackground acquires in a goroutine. The channel is closed after the outcome.
func InBackground(acquire func() (*rlock.Hold, error)) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		defer close(done)
		hold, err := acquire()
		done <- Outcome{hold, err, time.Now()}
	}()
	return done
}

// LockInBackground waits for a lock in a goroutine.
func LockInBackground(ctx context.Context, l rlock.Locker, lease rlock.Lease) <-chan Outcome {
	return InBackground(func() (*rlock.Hold, error) { return l.Lock(ctx, lease) })
}

// Result returns the outcome, which must come within Timeout.
func Result(t testing.TB, done <-chan Outcome) Outcome {
	t.Helper()
	return Receive(t, done, "the acquisition has not ended")
}

// Acquired returns the hold of an acquisition, which must succeed within Timeout.
func Acquired(t testing.TB, done <-chan Outcome) *rlock.Hold {
	t.Helper()
	o := Result(t, done)
	require.NoError(t, o.Err)
	return o.Hold
}

// Receive returns the next value of a channel, which must come within Timeout. A closed channel
// counts.
func Receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(Timeout):
		require.FailNow(t, otherwise)
		panic("unreachable")
	}
}

// Eventually waits until the condition is true, which must be within Timeout. The goroutine of the
// test checks it, so it may use redistest.Server.Do and the like. The longer it takes, the less
// often it is checked, down to every 50 ms: on a busy machine, checks delay what they wait for. A
// condition that becomes false again sooner may be missed.
func Eventually(t testing.TB, condition func() bool, otherwise string) {
	t.Helper()
	late := time.After(Timeout)
	for start := time.Now(); !condition(); {
		select {
		case <-time.After(min(max(time.Since(start)/10, time.Millisecond), 50*time.Millisecond)):
		case <-late:
			require.FailNow(t, "never became true: "+otherwise)
		}
	}
}

// Scripts returns the sources of all scripts by their file names, in tests of a package beside lua.
var Scripts = sync.OnceValue(func() map[string]string { return fragments.Read(os.DirFS("../lua")) })

// Within requires that f does not take longer than limit.
func Within(t testing.TB, limit time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Less(t, time.Since(start), limit)
}

// Missed lies between two times on a busy machine: a waiter that was woken takes less, and one that
// missed its wake-up takes more. Without the message it asks after 5 s in this library, and at the
// end of the lease in Redisson.
const Missed = 4 * time.Second

// BestOf measures up to five times how long a wake-up takes. It requires that one is shorter than
// limit, and that none is so long that the message was missed. A busy machine may delay one; only a
// broken mechanism delays all.
func BestOf(t testing.TB, limit time.Duration, measure func() time.Duration) {
	t.Helper()
	best := Missed
	for range 5 {
		took := measure()
		require.Less(t, took, Missed, "the wake-up was missed")
		best = min(best, took)
		if best < limit {
			return
		}
	}
	require.Less(t, best, limit)
}
