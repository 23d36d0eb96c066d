package rlock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).Client(t)
	for name, options := range map[string]rlock.Options{
		"WatchdogLease":          {WatchdogLease: 5 * time.Millisecond},
		"negative lease":         {WatchdogLease: -time.Second},
		"MaxHold":                {WatchdogLease: math.MaxInt64, MaxHold: time.Hour},
		"CommandTimeout":         {CommandTimeout: -1},
		"shorter than any reply": {CommandTimeout: time.Millisecond - 1},
		"FairWindow":             {FairWindow: 10*time.Second - 1},
		"SyncTimeout":            {SyncTimeout: time.Millisecond - 1},
		"SyncReplicas":           {SyncReplicas: rlock.SyncConnected - 1},
		"HandOver":               {HandOver: rlock.HandOverNone + 1},
		"WriterPreference":       {WriterPreference: rlock.PreferNobody + 1},
		"PubSub":                 {PubSub: rlock.PubSubSharded + 1},
		"PubSub below":           {PubSub: rlock.PubSubAuto - 1},
	} {
		_, err := rlock.New(redis, options)
		require.ErrorIs(t, err, rlock.ErrInvalid, name)
	}
	_, err := rlock.New(nil, rlock.Options{})
	require.ErrorIs(t, err, rlock.ErrInvalid)
}

// A virtual machine that is cloned with its memory has the same client twice, with the same count.
func TestCopyOfAProcessDoesNotTakeALockForItsOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		rlock.CountAgain(c)
		hold := take(t, k.contender(c, k.name), longLease)
		rlock.CountAgain(c)
		_, err := k.lock(c, k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		unlock(t, hold)
	})
}
