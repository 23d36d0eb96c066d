//go:build !race

package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// acquisitions returns the names of the locks of which a tracer heard that they were acquired or
// not since the last call.
func acquisitions(tr *locktest.Tracer) (yes, no []string) {
	for _, end := range locktest.Heard[rlock.AcquireEnd](tr) {
		if end.Err == nil {
			yes = append(yes, end.Lock.Name)
		} else {
			no = append(no, end.Lock.Name)
		}
	}
	tr.Forget()
	return yes, no
}

func TestTracerOfTheFirstLockHearsOfTheWholeAndItsParts(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		first, second := new(locktest.Tracer), new(locktest.Tracer)
		mine, _ := p.clients(t, rlock.Options{Tracer: first})
		_, another := p.clients(t, rlock.Options{Tracer: second})
		lock := multilock.New(mine.NewLock("c"), mine.NewLock("a"), another.NewLock("d"))
		hold := take(t, lock, longLease)
		yes, no := acquisitions(first)
		require.Equal(t, []string{"a", "c", "c+a+d"}, yes)
		require.Empty(t, no)
		yes, _ = acquisitions(second)
		require.Equal(t, []string{"d"}, yes)
		unlock(t, hold)

		// A batch that fails is no failed acquisition: the lock goes on without it.
		theirs := take(t, p.client.NewLock("c"), longLease)
		_, err := lock.TryLock(t.Context(), 300*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, "c", locktest.Heard[rlock.WaitStart](first)[0].Lock.Name)
		yes, no = acquisitions(first)
		require.Equal(t, []string{"a"}, yes)
		require.Equal(t, []string{"c", "c+a+d"}, no)
		unlock(t, theirs)
	})
}
