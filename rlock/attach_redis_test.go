//go:build redis

package rlock_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestDetachBesideANestedLockHasOneHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	for i := range 1000 {
		ctx, lock := rlock.WithOwner(t.Context()), c.NewLock("order "+strconv.Itoa(i))
		outer := takeWith(ctx, t, lock, longLease)
		nested := inBackground(func() (*rlock.Hold, error) {
			return lock.TryLock(ctx, rlock.NoWait, longLease)
		})
		if i%2 == 0 {
			runtime.Gosched()
		}
		text, _ := outer.Detach()
		if inner := result(t, nested).Hold; inner != nil {
			require.False(t, text != "" && inner.Owner() == outer.Owner(), "it is detached and held")
			_ = inner.Unlock(t.Context())
		}
		_ = outer.Unlock(t.Context())
	}
}
