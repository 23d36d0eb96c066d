package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Somebody else may have got the lock from the first command if that was executed, and keeps it.
func TestForceUnlockAfterAnIdleConnectionWasClosed(t *testing.T) {
	t.Parallel()
	for now, forced := range map[string]int{"owner:1": 2, "another:2": 1, "": 1} {
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			state := func(owner string) func([]string) any {
				holds := []any{}
				if owner != "" {
					holds = append(holds, owner, "1")
				}
				return func([]string) any { return []any{30_000, holds} }
			}
			b.reply("inspect.lua", state("owner:1"))
			b.reply("force_unlock.lua", func(args []string) any {
				b.reply("inspect.lua", state(now))
				b.reply("force_unlock.lua", released)
				b.server.Disconnect()
				return nil
			})
			held, err := b.lock.ForceUnlock(t.Context())
			require.NoError(t, err, now)
			require.True(t, held)
			require.Len(t, b.called("force_unlock.lua"), forced, now)
		})
	}
}

// Of two readers one leaves while the command is lost. The other is still there, so it was lost.
func TestForceUnlockIsSentAgainWhileAnOwnerStays(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		owners := []any{"a:1", "1", "b:2", "1"}
		b.reply("inspect.lua", func([]string) any { return []any{30_000, owners} })
		b.reply("force_unlock.lua", func([]string) any {
			owners = owners[2:]
			b.reply("force_unlock.lua", released)
			b.server.Disconnect()
			return nil
		})
		time.Sleep(2 * time.Second)
		held, err := b.lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		require.Len(t, b.called("force_unlock.lua"), 2)
	})
}
