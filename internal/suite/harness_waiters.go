package suite

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// soon is how late a call may return on a busy machine, beside a real Redis. It is less than the 5
// s after which a waiter asks Redis by itself.
const soon = 4 * time.Second

// anonymous is the option of a client that sends nothing but what its locks need.
func anonymous(o *rlock.Options) { o.Anonymous = true }

// settle waits until everything that was begun waits for something: a reply, a lock, or the clock.
// On a real Redis it waits for long enough as a rule. A promise must not fail if it was too short.
func (e *Env) settle() {
	if e.Virtual {
		synctest.Wait()
		return
	}
	for range 10 { // many short sleeps last longer on a busy machine, and replies on a busy server
		time.Sleep(8 * time.Millisecond)
		for _, server := range e.Servers {
			if busy, ok := server.(interface{ Replies() bool }); ok {
				busy.Replies()
			}
		}
	}
}

// everywhere waits until all masters have a lock that was acquired. A RedLock is acquired when a
// quorum has it. The other masters get it, too, if nothing was left on them before.
func (e *Env) everywhere(t *testing.T, k Kind, name string) {
	t.Helper()
	locktest.Eventually(t, func() bool {
		return !slices.ContainsFunc(e.Servers, func(s Server) bool {
			return !slices.Contains(s.Keys(t), k.key(name))
		})
	}, "a master does not have it")
	e.settle() // until the replies have arrived
}

// waiter lets a goroutine wait for a lock that is held, and returns when it waits.
func (e *Env) waiter(ctx context.Context, t *testing.T, l rlock.Locker) <-chan locktest.Outcome {
	t.Helper()
	done := locktest.LockInBackground(ctx, l, rlock.Watchdog)
	e.settle()
	return done
}

// waiters returns that many waiters, in the order of their arrival.
func (e *Env) waiters(
	ctx context.Context, t *testing.T, n int, l rlock.Locker,
) (all []<-chan locktest.Outcome) {
	t.Helper()
	for range n {
		all = append(all, e.waiter(ctx, t, l))
	}
	return all
}

// try tries to acquire a lock in a goroutine.
func try(
	ctx context.Context, l rlock.Locker, wait time.Duration, lease rlock.Lease,
) <-chan locktest.Outcome {
	return locktest.InBackground(
		func() (*rlock.Hold, error) { return l.TryLock(ctx, wait, lease) })
}

// requireWaiting requires that none of these acquisitions has ended.
func (e *Env) requireWaiting(t *testing.T, waiters ...<-chan locktest.Outcome) {
	t.Helper()
	e.settle()
	for _, w := range waiters {
		require.Empty(t, w)
	}
}

// requireTook requires that something took exactly this long. On a real Redis it may be late.
func (e *Env) requireTook(t *testing.T, want, took time.Duration, why ...any) {
	t.Helper()
	if e.Virtual {
		require.Equal(t, want, took, why...)
		return
	}
	require.GreaterOrEqual(t, took, want, why...)
	require.Less(t, took, want+soon, why...)
}

// atMost is a limit in virtual time. On a real Redis a busy machine may need longer.
func (e *Env) atMost(limit time.Duration) time.Duration {
	if e.Virtual {
		return limit
	}
	return limit + soon
}

// scripts returns how many scripts the servers have executed. Locks use nothing else, and clients
// use none to say who they are if they are anonymous.
func (e *Env) scripts(t *testing.T) (all int) {
	t.Helper()
	for _, server := range e.Servers {
		n, _ := calls(t, server)
		all += n
	}
	return all
}

// Asked returns how many scripts a server has executed since the last call of Asked, and how many
// commands, with those of the scripts.
func Asked(t testing.TB, s Server) (scripts, commands int) {
	t.Helper()
	scripts, commands = calls(t, s)
	s.Do(t, "CONFIG", "RESETSTAT")
	return scripts, commands
}

// notCounted are the commands that open or check a connection, and those of this package.
var notCounted = []string{"auth", "client", "config", "hello", "info", "ping"}

// calls is Asked since the start, or the last call of Asked.
func calls(t testing.TB, s Server) (scripts, commands int) {
	t.Helper()
	stats, _ := s.Do(t, "INFO", "commandstats").(string)
	for line := range strings.SplitSeq(stats, "\r\n") {
		name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		of, _, _ := strings.Cut(name, "|") // config|resetstat
		if !found || slices.Contains(notCounted, of) {
			continue
		}
		count, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		commands += n
		if name == "evalsha" { // EVAL follows only if the server does not know the script
			scripts += n
		}
	}
	return scripts, commands
}

// channels returns the channels of one server on which somebody listens.
func channels(t *testing.T, s Server) (names []string) {
	t.Helper()
	for _, name := range s.Do(t, "PUBSUB", "CHANNELS").([]any) {
		names = append(names, name.(string))
	}
	return names
}

// requireQuiet requires that soon nothing is left on the servers, and nobody listens.
func (e *Env) requireQuiet(t *testing.T) {
	t.Helper()
	e.RequireNothingLeft(t)
	locktest.Eventually(t, func() bool {
		for _, s := range e.Servers {
			if len(channels(t, s)) > 0 {
				return false
			}
		}
		return true
	}, "somebody listens")
}

// requireListening requires that soon somebody listens on each server.
func (e *Env) requireListening(t *testing.T) {
	t.Helper()
	locktest.Eventually(t, func() bool {
		for _, s := range e.Servers {
			if len(channels(t, s)) == 0 {
				return false
			}
		}
		return true
	}, "nobody listens")
}

// keys returns the keys of all servers, except those that outlast a lock by design.
func (e *Env) keys(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range e.Servers {
		all = append(all, ofLocks(t, s)...)
	}
	return all
}

// ofLocks is keys of one server.
func ofLocks(t *testing.T, s Server) []string {
	t.Helper()
	return slices.DeleteFunc(s.Keys(t), func(key string) bool {
		return strings.HasPrefix(key, "redisson_lock_token:") ||
			strings.HasPrefix(key, "holdfast_rwlock_")
	})
}

// known returns the keys by which Redis knows waiters.
func (e *Env) known(t *testing.T) (keys []string) {
	t.Helper()
	for _, s := range e.Servers {
		for _, key := range s.Keys(t) {
			for _, prefix := range []string{"redisson_lock_queue:", "redisson_lock_timeout:",
				"holdfast_lock_waiters:", "holdfast_rwlock_writer:"} {
				if strings.HasPrefix(key, prefix) {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}

// requireHeldBy requires an error that names the holder, and returns it.
func requireHeldBy(t *testing.T, holder *rlock.Hold, err error) *rlock.HeldError {
	t.Helper()
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, holder.Owner(), held.Owner)
	return held
}

// requireNext requires that these waiters acquire the lock, one after the other, without delay
// since the release. A RedLock has to vote again if two waiters ask at the same instant.
func (e *Env) requireNext(
	t *testing.T, released time.Time, waiters ...<-chan locktest.Outcome,
) {
	t.Helper()
	limit := e.atMost(0)
	if len(e.Servers) > 1 {
		limit = e.atMost(50 * time.Millisecond)
	}
	for i, w := range waiters {
		o := locktest.Result(t, w)
		require.NoError(t, o.Err, "waiter %d", i)
		require.LessOrEqual(t, o.At.Sub(released), limit, "waiter %d", i)
		released = time.Now()
		locktest.Unlock(t, o.Hold)
	}
}

// queuesHere reports whether the waiters of a process queue there, and only the first of them asks
// Redis. Waiters for fair locks queue in Redis.
func queuesHere(k Kind) bool { return !k.Fair }

// anyOf returns the hold of the next of these waiters that acquires the lock.
func anyOf(t *testing.T, waiters []<-chan locktest.Outcome) (hold *rlock.Hold) {
	t.Helper()
	locktest.Eventually(t, func() bool {
		for _, w := range waiters {
			select {
			case o, open := <-w:
				if open {
					require.NoError(t, o.Err)
					hold = o.Hold
					return true
				}
			default:
			}
		}
		return false
	}, "no waiter gets the lock")
	return hold
}

// held returns a lock whose contender another client holds. Only the lock's client sends scripts.
func (e *Env) held(t *testing.T, k Kind) (rlock.Locker, *rlock.Hold) {
	t.Helper()
	hold := locktest.Acquire(t, k.Contender(e.Party(t, anonymous), "lock"), rlock.Lease(time.Minute))
	e.everywhere(t, k, "lock")
	return k.New(e.Party(t, anonymous), "lock"), hold
}

// pause makes all servers hang until resume, or until the test ends.
func (e *Env) pause(t *testing.T) {
	t.Helper()
	for _, s := range e.Servers {
		s.Pause(t)
	}
	t.Cleanup(func() { e.resume(t) })
}

// resume ends pause.
func (e *Env) resume(t *testing.T) {
	t.Helper()
	for _, s := range e.Servers {
		s.Resume(t)
	}
}

// slow makes all servers reply late, in virtual time.
func (e *Env) slow(d time.Duration) {
	for _, s := range e.Servers {
		s.(inProcess).SetDelay(d)
	}
}
