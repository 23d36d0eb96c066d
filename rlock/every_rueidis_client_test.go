//go:build redis

package rlock_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestLocksWorkWithEveryKindOfRueidisClient(t *testing.T) {
	t.Parallel()
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			requireAllBasics(t, func() rueidis.Client { return s.Client(t, variant) }, true)
			waitForNothingLeft(t, s)
		})
	}
}

func TestLocksWorkOverTLSWithAPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithTLS(), redistest.WithPassword("secret"))
	requireAllBasics(t, func() rueidis.Client { return s.Client(t) }, true)
}

func TestLocksWorkWithAWrappedClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	requireAllBasics(t, func() rueidis.Client { return wrapped{s.Client(t)} }, true)
}

// The clock of miniredis stands still, so this shows nothing about leases.
func TestLocksWorkOnMiniredis(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	requireAllBasics(t, func() rueidis.Client {
		option := rueidis.ClientOption{InitAddress: []string{s.Addr()}}
		resp2(&option)
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		return redis
	}, false)
}
