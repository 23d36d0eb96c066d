package rlock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Others want to know whose lock it is that stays held after its client has ended.
func TestClosedClientIsKnownWhileALeftLockRemains(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, leave := range map[string]func(h *rlock.Hold){
		"Leave":  (*rlock.Hold).Leave,
		"Detach": func(h *rlock.Hold) { _, _ = h.Detach() },
	} {
		for _, lease := range []time.Duration{time.Hour, math.MaxInt64 - 1} {
			c := newClient(t, s, rlock.Options{})
			key := "holdfast_client:{" + c.ID() + "}"
			hold := take(t, c.NewLock(name+lease.String()), lease)
			eventually(t, func() bool { return exists(s, key) }, "it does not say who it is")
			leave(hold)
			closeClient(t, c)
			require.True(t, exists(s, key), "%s %v", name, lease)
		}
	}
}

func TestClosedClientIsForgottenOnceTheLeaseOfALeftLockIsOver(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		deleted := make(chan []string, 1)
		b.server.Handle("DEL", func(args []string) any {
			deleted <- args
			return 1
		})
		hold := take(t, b.lock, 2*time.Second)
		time.Sleep(time.Second)
		require.NotEmpty(t, b.called("identify.lua"), "it does not say who it is")
		hold.Leave()
		time.Sleep(8 * time.Second) // the lease, and a CommandTimeout
		closeClient(t, b.client)
		require.Len(t, deleted, 1)
	})
}
