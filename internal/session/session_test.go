package session

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func budget(t *testing.T, limit time.Duration) *wait.Budget {
	return wait.NewBudget(t.Context(), nil, limit)
}

func TestSessionIsSharedByItsUsersAndForgottenAfterTheLast(t *testing.T) {
	all := New[string, int]()
	first, second := all.Open("order 7"), all.Open("order 7")
	require.Same(t, first, second)
	require.NotSame(t, first, all.Open("order 8"))
	require.Equal(t, "order 7", first.Key())
	require.Same(t, first, all.Find("order 7"))
	require.Len(t, all.All(), 2)

	first.Use()
	first.Close()
	second.Close()
	require.Same(t, first, all.Find("order 7"), "it is still in use")
	first.Close()
	require.Nil(t, all.Find("order 7"))
	require.NotSame(t, first, all.Open("order 7"))
}

func TestNewSessionIsFoundOnceItIsEnteredAndUntilItIsClosed(t *testing.T) {
	all := New[string, int]()
	var s, closed Session[string, int]
	all.OpenNew(&s, "order 7")
	require.Nil(t, all.Find("order 7"))
	require.False(t, s.TryLock(), "it is locked for its caller")
	s.Unlock()
	require.True(t, s.TryLock())
	s.Enter()
	s.Enter()
	require.Same(t, &s, all.Open("order 7"))
	s.Close()
	require.Same(t, &s, all.Find("order 7"))
	s.Close()
	require.Nil(t, all.Find("order 7"))

	all.OpenNew(&closed, "order 8")
	closed.Close()
	closed.Enter()
	require.Nil(t, all.Find("order 8"))
}

// Its owner has opened another one since.
func TestSessionThatWasClosedIsNotEnteredAgain(t *testing.T) {
	all := New[string, int]()
	var unknown Session[string, int]
	all.OpenNew(&unknown, "order 7")
	known := all.Open("order 8")
	for _, s := range []*Session[string, int]{&unknown, known} {
		s.Close()
		next := all.Open(s.Key())
		var users sync.WaitGroup
		for range 8 {
			users.Go(s.Enter)
		}
		users.Wait()
		require.Same(t, next, all.Find(s.Key()))
	}
}

func TestSessionIsLockedByOneCallerAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string, int]().Open("order 7")
		require.True(t, s.TryLock())
		var order []int
		for i := range 3 {
			go func() {
				if s.Lock(budget(t, time.Hour)) {
					order = append(order, i)
					s.Unlock()
				}
			}()
			synctest.Wait()
		}
		require.Empty(t, order)
		s.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.True(t, s.TryLock())
	})
}

func TestCallerWhoseBudgetEndsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string, int]().Open("order 7")
		require.True(t, s.TryLock())
		var got atomic.Bool
		go func() { got.Store(s.Lock(budget(t, time.Hour))) }()
		synctest.Wait()
		start := time.Now()
		require.False(t, s.Lock(budget(t, time.Second)))
		require.Equal(t, time.Second, time.Since(start))
		s.Unlock()
		synctest.Wait()
		require.True(t, got.Load())
		s.Unlock()
		require.True(t, s.TryLock(), "a caller that left does not hold it")
	})
}

// Its budget ends just when the session is unlocked for it.
func TestCallerThatLeavesWithTheSessionLockedUnlocksIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := New[string, int]().Open("order 7")
			require.True(t, s.TryLock())
			go func() {
				time.Sleep(time.Second)
				s.Unlock()
			}()
			if s.Lock(budget(t, time.Second)) {
				s.Unlock()
			}
			synctest.Wait()
			require.True(t, s.TryLock())
		}
	})
}

func TestLockAllHoldsNoneWhileItWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New[string, int]()
		of := []*Session[string, int]{all.Open("a"), all.Open("b"), all.Open("c")}
		require.True(t, of[1].TryLock())
		locked := make(chan int, 1)
		go func() { locked <- LockAll(budget(t, time.Hour), of) }()
		synctest.Wait()
		for _, i := range []int{0, 2} {
			require.True(t, of[i].TryLock(), "held while waiting for another")
		}
		of[1].Unlock() // it locks this one now, and waits for the first
		synctest.Wait()
		require.True(t, of[1].TryLock())
		of[1].Unlock()
		of[0].Unlock()
		of[2].Unlock()
		require.Equal(t, -1, <-locked)
		for _, s := range of {
			require.False(t, s.TryLock())
			s.Unlock()
		}

		require.True(t, of[2].TryLock())
		require.Equal(t, 2, LockAll(budget(t, time.Second), of))
		require.True(t, of[0].TryLock())
		require.True(t, of[1].TryLock())
	})
}

// The last user closes a session just as it is entered. Open with its key returns another one from
// then on, which that Close must leave alone.
func TestCloseLeavesAnotherSessionOfTheKeyAlone(t *testing.T) {
	all := New[string, int]()
	var s Session[string, int]
	all.OpenNew(&s, "order 7")
	var users sync.WaitGroup
	all.mu.Lock()
	s.entered.Store(true) // Enter has begun
	users.Go(s.Close)
	for s.users.Load() > 0 {
		runtime.Gosched()
	}
	all.mu.Unlock()
	next := all.Open("order 7")
	users.Wait()
	require.Same(t, next, all.Find("order 7"))
	require.NotSame(t, &s, next)
}
