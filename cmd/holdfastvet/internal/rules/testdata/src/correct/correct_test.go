package correct

import (
	"errors"
	"testing"
	"time"

	"example.com/shop"
	"github.com/stretchr/testify/require"
	"holdfast/rlock"
)

func take(t *testing.T, lock rlock.Locker) *rlock.Hold {
	t.Helper()
	hold, err := lock.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hold.Unlock()) })
	return hold
}

func TestSecondOwnerWaits(t *testing.T) {
	lock := new(rlock.Client).NewLock("order")
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
	require.NoError(t, err)
	_, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	second, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.Error(t, err)
	require.Nil(t, second)
	shop.Ship(t.Context())
	time.Sleep(2 * time.Second)
	require.False(t, hold.Valid())
	require.NoError(t, hold.Unlock())
}

func TestTableOfAttempts(t *testing.T) {
	lock := new(rlock.Client).NewFencedLock("order")
	for name, want := range map[string]error{"free": nil, "held": rlock.ErrNotAcquired} {
		t.Run(name, func(t *testing.T) {
			hold, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			if !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if err == nil {
				require.NoError(t, hold.Unlock())
			}
		})
	}
}

func TestMatches(t *testing.T) {
	hold, err := new(rlock.Client).NewLock("order").Lock(t.Context(), rlock.Watchdog)
	requireBusy(t, err)
	require.Nil(t, hold)
}

func requireBusy(t *testing.T, err error) { require.ErrorIs(t, err, rlock.ErrNotAcquired) }
