package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := s.Client(t)
	for name, options := range map[string]rlock.Options{
		"WatchdogLease":          {WatchdogLease: 5 * time.Millisecond},
		"negative lease":         {WatchdogLease: -time.Second},
		"CommandTimeout":         {CommandTimeout: -1},
		"shorter than any reply": {CommandTimeout: time.Millisecond - 1},
		"PubSub":                 {PubSub: rlock.PubSubSharded + 1},
		"PubSub below":           {PubSub: rlock.PubSubAuto - 1},
	} {
		_, err := rlock.New(redis, options)
		require.ErrorIs(t, err, rlock.ErrInvalid, name)
	}
	_, err := rlock.New(nil, rlock.Options{})
	require.ErrorIs(t, err, rlock.ErrInvalid)
}
