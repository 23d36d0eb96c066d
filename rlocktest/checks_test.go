package rlocktest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rehearsal is a test that may fail without failing the one that plays it.
type rehearsal struct {
	testing.TB
	mu       sync.Mutex
	errors   []string // guarded by mu
	cleanups []func()
}

// rehearse runs a test, and returns its errors.
func rehearse(t *testing.T, test func(t testing.TB, redis *rlocktest.Redis)) []string {
	t.Helper()
	r := &rehearsal{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.end()
		test(r, rlocktest.New(r))
	}()
	<-ended
	return r.errors
}

func (r *rehearsal) end() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		r.cleanups[last]()
		r.cleanups = r.cleanups[:last]
	}
}

func (r *rehearsal) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *rehearsal) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errors) > 0
}

func (r *rehearsal) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprint(args...))
}

func (r *rehearsal) Fatalf(format string, args ...any) {
	r.Error(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// requireProblems requires one error for each list of words, with these words in it.
func requireProblems(t *testing.T, errors []string, words ...[]string) {
	t.Helper()
	require.Len(t, errors, len(words))
	for i, each := range words {
		for _, word := range each {
			require.Contains(t, errors[i], word)
		}
	}
}

func TestLockThatIsNotReleasedFailsTheTest(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		_, err := redis.Client().NewLock("order:42").Lock(t.Context(), rlock.Watchdog)
		require.NoError(t, err)
		page := redis.Client().NewReadWriteLock("page")
		hold, err := page.Read().Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		_, err = page.Read().Lock(hold.Context(), rlock.Lease(time.Minute)) // two levels
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	})
	requireProblems(t, errors, []string{`"order:42": not released`, "checks_test.go:"},
		[]string{`"page": not released`, "checks_test.go:"})
}

func TestLockOfAClientThatTheProgramMadeIsMissedAsWell(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		connection, err := rueidis.NewClient(redis.ClientOption())
		require.NoError(t, err)
		t.Cleanup(connection.Close)
		client, err := rlock.New(connection, rlock.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
		_, err = client.NewReadWriteLock("page").Write().Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
	})
	requireProblems(t, errors, []string{`"page": not released`})
}

func TestCallThatStillWaitsFailsTheTest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		redis.Busy("order:42")
		go func() {
			defer close(ended)
			_, _ = redis.Client().NewFairLock("order:42").Lock(ctx, rlock.Lease(time.Minute))
		}()
		redis.AwaitWaiter("order:42")
	})
	requireProblems(t, errors, []string{"1 calls still wait for a lock"})
	cancel()
	<-ended
}

func TestLocksTakenInOppositeOrdersFailTheTest(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"two": {"a b", "b a"}, "circle": {"a b", "b c", "c a"}, "far apart": {"a b c", "x c a"},
	} {
		t.Run(name, func(t *testing.T) {
			errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
				for _, names := range order {
					takeInOrder(t, redis, strings.Fields(names)...)
				}
			})
			requireProblems(t, errors, []string{"opposite orders", `"a" (`, "checks_test.go:"})
		})
	}
}

func TestOneNameForTwoKindsOfLockFailsTheTest(t *testing.T) {
	t.Parallel()
	use := func(t testing.TB, locks ...rlock.Locker) {
		for _, lock := range locks {
			hold, err := lock.Lock(t.Context(), rlock.Lease(time.Minute))
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
		}
	}
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		c, other := redis.Client(), redis.NewClient(rlock.Options{})
		use(t, c.NewLock("a"), other.NewNonReentrantLock("a"), other.NewFencedLock("a")) // fine
		use(t, c.NewReadWriteLock("b").Read(), other.NewReadWriteLock("b").Write())      // fine
		use(t, c.NewLock("c"), other.NewFairLock("c"), c.NewReadWriteLock("c").Read())
	})
	requireProblems(t, errors, []string{`lock "c": used as two kinds of lock: as a plain lock (`,
		"as a fair lock (", "checks_test.go:", "use one kind of lock for one name"})
	require.Empty(t, rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		redis.Allow(rlocktest.Kinds)
		use(t, redis.Client().NewLock("c"), redis.Client().NewFairLock("c"))
	}))
}

// takeInOrder takes locks, and releases them.
func takeInOrder(t testing.TB, redis *rlocktest.Redis, names ...string) {
	t.Helper()
	for _, name := range names {
		hold, err := redis.Client().NewLock(name).Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		defer func() { require.NoError(t, hold.Unlock()) }()
	}
}

func TestTidyProgramPassesAllChecks(t *testing.T) {
	t.Parallel()
	require.Empty(t, rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, "a", "b", "c")
		takeInOrder(t, redis, "b", "c")
		takeInOrder(t, redis, "c")
		c := redis.Client()

		// Nested levels wait for nobody.
		a, err := c.NewLock("a").Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		b, err := c.NewLock("b").Lock(a.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		again, err := c.NewLock("a").Lock(b.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		for _, hold := range []*rlock.Hold{again, b, a} {
			require.NoError(t, hold.Unlock())
		}
		// A MultiLock has one order.
		for _, locks := range [][]rlock.Locker{
			{c.NewLock("a"), c.NewFairLock("f")}, {c.NewFairLock("f"), c.NewLock("a")},
		} {
			hold, err := multilock.New(locks...).Lock(t.Context(), rlock.Lease(time.Minute))
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
		}
		// A lock that was lost need not be released.
		_, err = c.NewLock("a").Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		redis.Lose("a")
		redis.Busy("b") // a stranger is no fault of the program
		redis.Down()
	}))
}

// A program may end when the context of the test does.
func TestWhatEndsWithTheContextOfTheTestIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		hold, err := redis.Client().NewLock("order:42").Lock(t.Context(), rlock.Watchdog)
		require.NoError(t, err)
		go func() {
			<-t.Context().Done()
			time.Sleep(100 * time.Millisecond)
			_ = hold.Unlock()
		}()
		go func() {
			_, _ = redis.Client().NewLock("order:42").Lock(t.Context(), rlock.Lease(time.Minute))
		}()
		synctest.Wait()
	})
}

func TestMistakesInATestEndIt(t *testing.T) {
	t.Parallel()
	for wants, mistake := range map[string]func(t testing.TB, redis *rlocktest.Redis){
		"nobody holds it": func(_ testing.TB, redis *rlocktest.Redis) { redis.Lose("order:42") },
		"cannot be made busy, because": func(t testing.TB, redis *rlocktest.Redis) {
			redis.Busy("order:42")
			redis.Busy("order:42")
		},
		"of at least 1ms":   func(_ testing.TB, redis *rlocktest.Redis) { redis.BusyFor("order:42", 0) },
		"positive duration": func(_ testing.TB, redis *rlocktest.Redis) { redis.Advance(-time.Second) },
		"CommandTimeout must": func(_ testing.TB, redis *rlocktest.Redis) {
			redis.NewClient(rlock.Options{CommandTimeout: -1})
		},
	} {
		requireProblems(t, rehearse(t, mistake), []string{wants})
	}
}

// takeTwo takes a lock and wants another one while it has the first. It returns the error of the
// second, and releases all.
func takeTwo(ctx context.Context, t testing.TB, first, second rlock.Locker, both func(),
	wait time.Duration) error {
	t.Helper()
	outer, err := first.Lock(ctx, rlock.Lease(time.Minute))
	require.NoError(t, err)
	defer func() { require.NoError(t, outer.Unlock()) }()
	both()
	inner, err := second.TryLock(outer.Context(), wait, rlock.Lease(time.Minute))
	if err == nil {
		require.NoError(t, inner.Unlock())
	}
	return err
}

func TestCallThatIsRefusedAsADeadlockFailsTheTest(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		a, b := redis.Client().NewLock("a"), redis.Client().NewLock("b")
		locked, proceed := make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			//nolint:testifylint // the test ends if its goroutine does
			done <- takeTwo(t.Context(), t, a, b, func() { close(locked); <-proceed }, rlock.Forever)
		}()
		<-locked
		err := takeTwo(t.Context(), t, b, a, func() { close(proceed); redis.AwaitWaiter("b") },
			rlock.Forever)
		require.ErrorIs(t, err, rlock.ErrDeadlock) // a program may take it for "somebody has it"
		require.NoError(t, <-done)
	})
	requireProblems(t, errors, []string{"opposite orders", `"a" (`, `"b" (`,
		"checks_test.go:"})
}

func TestOrderOfACallThatDidNotGetItsLockCounts(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, "a", "b")
		free := redis.Busy("a")
		b := redis.Client().NewLock("b")
		err := takeTwo(t.Context(), t, b, redis.Client().NewLock("a"), func() {}, rlock.NoWait)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		free()
	})
	requireProblems(t, errors, []string{"opposite orders", `"a" (`, `"b" (`})
}
