package rlock_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// patience is how long a test waits for what must happen soon, on a machine that may be busy.
const patience = 10 * time.Second

// newClient returns a client of the server with connections of its own, both closed in clean-up. It logs nothing unless
// options say so.
func newClient(t testing.TB, s *redistest.Server, options rlock.Options, mutators ...func(*rueidis.ClientOption)) *rlock.Client {
	t.Helper()
	return newClientOn(t, s.Client(t, mutators...), options)
}

// newClientOn returns a client on the given connections, closed in clean-up. Close is given time enough to be called
// a failure if it hangs.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// closeClient closes c, which must not take longer than patience.
func closeClient(t testing.TB, c *rlock.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, c.Close(ctx))
}

// take acquires a lock that is free.
func take(t testing.TB, l rlock.Locker, lease time.Duration) *rlock.Hold {
	t.Helper()
	return takeWith(t.Context(), t, l, lease)
}

// takeWith acquires, with a given context, a lock that is free or its owner's.
func takeWith(ctx context.Context, t testing.TB, l rlock.Locker, lease time.Duration) *rlock.Hold {
	t.Helper()
	hold, err := l.TryLock(ctx, rlock.NoWait, lease)
	require.NoError(t, err)
	return hold
}

// unlock releases a hold, which must succeed.
func unlock(t testing.TB, h *rlock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// outcome is what became of an acquisition, and when.
type outcome struct {
	hold *rlock.Hold
	err  error
	at   time.Time
}

// inBackground acquires in a goroutine. The channel is closed after the outcome.
func inBackground(acquire func() (*rlock.Hold, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		defer close(done)
		hold, err := acquire()
		done <- outcome{hold, err, time.Now()}
	}()
	return done
}

// lockInBackground waits for a lock in a goroutine.
func lockInBackground(ctx context.Context, l rlock.Locker, lease time.Duration) <-chan outcome {
	return inBackground(func() (*rlock.Hold, error) { return l.Lock(ctx, lease) })
}

// result is the outcome, which must come within patience.
func result(t testing.TB, done <-chan outcome) outcome {
	t.Helper()
	return receive(t, done, "the acquisition has not ended")
}

// acquired is the hold of an acquisition that must succeed within patience.
func acquired(t testing.TB, done <-chan outcome) *rlock.Hold {
	t.Helper()
	o := result(t, done)
	require.NoError(t, o.err)
	return o.hold
}

// receive takes a value from a channel on which one must come within patience. A closed channel counts.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		require.FailNow(t, otherwise)
		panic("unreachable")
	}
}

// eventually waits until the condition is true, which must be within patience. The condition is asked by the goroutine of
// the test, so that it may use Server.Do and the like.
func eventually(t testing.TB, condition func() bool, otherwise string) {
	t.Helper()
	late := time.After(patience)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-late:
			require.FailNow(t, "never came true: "+otherwise)
		}
	}
}

// channelOf is the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// subscribers is how many connections listen on the channel of a lock. -1 if the server does not say.
func subscribers(s *redistest.Server, lock string) int { return listening(s, "NUMSUB", lock) }

// listening is subscribers for channels of either kind, which numsub tells: NUMSUB or SHARDNUMSUB.
func listening(s *redistest.Server, numsub, lock string) int {
	return subscribed(s, numsub, channelOf(lock))
}

// subscribed is listening for any channel.
func subscribed(s *redistest.Server, numsub, channel string) int {
	reply, err := s.Call("PUBSUB", numsub, channel)
	if err != nil {
		return -1
	}
	n, _ := reply.([]any)[1].(int64)
	return int(n)
}

// awaitListeners waits until exactly n connections listen on the channel of a lock.
func awaitListeners(t testing.TB, s *redistest.Server, lock string, n int) {
	t.Helper()
	eventually(t, func() bool { return subscribers(s, lock) == n }, strconv.Itoa(n)+" listeners on "+channelOf(lock))
}
