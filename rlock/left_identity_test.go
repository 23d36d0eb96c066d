package rlock_test

import (
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
		c := newClient(t, s, rlock.Options{})
		key := "holdfast_client:{" + c.ID() + "}"
		hold := take(t, c.NewLock(name), time.Hour)
		eventually(t, func() bool { return exists(s, key) }, "it does not say who it is")
		leave(hold)
		closeClient(t, c)
		require.True(t, exists(s, key), name)
	}
}
