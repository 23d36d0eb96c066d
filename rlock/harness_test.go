package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Short names for what locktest shares with the tests of all locks.

const longWait = locktest.Timeout

type (
	outcome = locktest.Outcome
)

var (
	closeClient      = locktest.CloseClient
	take             = locktest.Acquire
	takeWith         = locktest.AcquireWith
	unlock           = locktest.Unlock
	inBackground     = locktest.InBackground
	lockInBackground = locktest.LockInBackground
	result           = locktest.Result
	acquired         = locktest.Acquired
	eventually       = locktest.Eventually
)

// receive calls locktest.Receive.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	return locktest.Receive(t, from, otherwise)
}

// anonymous are the options of a client whose commands a test counts: none comes by itself, to say
// who the client is. A [redistest.Monitor] leaves out those.
var anonymous = rlock.Options{Anonymous: true}

// newClient returns a client with connections of its own to the server, both closed in clean-up. It
// logs nothing unless options say otherwise.
func newClient(
	t testing.TB, s *redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) *rlock.Client {
	t.Helper()
	return newClientOn(t, s.Client(t, mutators...), options)
}

// newClientOn returns a client on the given connections, closed in clean-up. Close gets time enough
// to be called a failure if it hangs.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	withheld := false // some commands, on purpose: who the client is must not be among them
	switch redis.(type) {
	case *gated, *stepwise:
		withheld, options.Anonymous = true, true
	}
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	if withheld { // no caller can leave, even if its context ends
		rlock.Detach(c)
	}
	return c
}

// channelOf returns the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// subscribers returns how many connections listen on the channel of a lock, or -1 if the server
// does not reply.
func subscribers(s *redistest.Server, lock string) int { return listening(s, "NUMSUB", lock) }

// listening is subscribers for channels of either kind; numsub is NUMSUB or SHARDNUMSUB.
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

// waitForListeners waits until exactly n connections listen on the channel of a lock.
func waitForListeners(t testing.TB, s *redistest.Server, lock string, n int) {
	t.Helper()
	eventually(t, func() bool { return subscribers(s, lock) == n },
		strconv.Itoa(n)+" listeners on "+channelOf(lock))
}

// calls returns how often the server has executed a command, also in scripts. Unlike CommandStats
// it may be called in a condition.
func calls(s *redistest.Server, command string) int {
	reply, _ := s.Call("INFO", "commandstats")
	info, _ := reply.(string)
	_, after, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	count, _, _ := strings.Cut(after, ",")
	n, _ := strconv.Atoi(count) // 0 if it was never called
	return n
}

// lostTo requires that the hold ends soon with ErrLost for the given reason, and that its context
// and its release report that.
func lostTo(t *testing.T, hold *rlock.Hold, reason error) {
	t.Helper()
	ctx := hold.Context()
	receive(t, ctx.Done(), "the context of a lost hold has not ended")
	lost := new(rlock.LostError)
	require.ErrorAs(t, context.Cause(ctx), &lost)
	require.ErrorIs(t, lost, rlock.ErrLost)
	if reason != nil {
		require.ErrorIs(t, lost, reason)
	}
	receive(t, hold.Done(), "a lost hold is not done")
	require.False(t, hold.Valid())
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}

// verbs returns the names of commands, without those of redistest itself.
func verbs(commands [][]string) []string {
	names := make([]string, len(commands))
	for i, command := range commands {
		names[i] = command[0]
	}
	return names
}

// listener is a plain subscriber of one channel.
type listener struct{ lines *bufio.Reader }

// listen subscribes, and returns when the server has confirmed it.
func listen(t *testing.T, s *redistest.Server, channel string) *listener {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*longWait)))
	_, err = fmt.Fprintf(conn, "*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n", len(channel), channel)
	require.NoError(t, err)
	l := &listener{bufio.NewReader(conn)}
	require.Equal(t, []string{"subscribe", channel}, l.next(t)[:2])
	return l
}

// next returns the next message: "message", channel, payload.
func (l *listener) next(t *testing.T) []string {
	t.Helper()
	var words []string
	for len(words) < 3 {
		line, err := l.lines.ReadString('\n')
		require.NoError(t, err)
		if line = strings.TrimSpace(line); !strings.ContainsAny(line[:1], "*$") {
			words = append(words, line)
		}
	}
	return words
}
