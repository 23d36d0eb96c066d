package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// closeIdle makes a server close all connections of its clients, as with its option timeout, or as
// a proxy does. rueidis notices that with the next command.
func closeIdle(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.DoInt(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	eventually(t, func() bool {
		clients, err := s.Call("CLIENT", "LIST", "TYPE", "normal")
		list, _ := clients.(string)
		return err == nil && strings.Count(list, "\n") == 1
	}, "a connection is left")
}

// A cron job that uses NoWait would never run: its connection is idle between two runs.
func TestFirstCommandAfterAnIdleConnectionWasClosedSucceeds(t *testing.T) {
	t.Parallel()
	for name, connections := range map[string]func(*rueidis.ClientOption){
		"one connection": redistest.OneConnection,
		"several":        func(o *rueidis.ClientOption) { o.PipelineMultiplex = 2 },
		"no pipelining":  func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			ctx := context.Background() // it cannot end, so that rueidis does not pipeline
			c := newClient(t, s, anonymous, connections)
			tryNow := func(l rlock.Locker) func() error {
				return func() error {
					hold, err := l.TryLock(ctx, rlock.NoWait, time.Minute)
					if err == nil {
						err = hold.Unlock(ctx)
					}
					return err
				}
			}
			held := take(t, c.NewLock("held"), longLease)
			calls := map[string]func() error{
				"re-entry": func() error {
					hold, err := c.NewLock("held").TryLock(held.Context(), rlock.NoWait, longLease)
					if err == nil {
						err = hold.Unlock(ctx)
					}
					return err
				},
				"Extend": func() error { return held.Extend(ctx, longLease) },
				"Info": func() error {
					_, err := c.NewLock("held").Info(ctx)
					return err
				},
				"Detach and Attach": func() error {
					detached, err := take(t, c.NewLock("detached"), longLease).Detach()
					require.NoError(t, err)
					closeIdle(t, s)
					hold, err := c.Attach(ctx, detached, longLease)
					if err == nil {
						err = hold.Unlock(ctx)
					}
					return err
				},
				"MultiLock": tryNow(multilock.New(c.NewLock("a"), c.NewLock("b"))),
				"RedLock": tryNow(redlock.NewOn("quorum",
					redlock.Options{FsyncAlways: true, NodeTimeout: enough}, c)),
			}
			for _, k := range kinds {
				calls[k.name] = tryNow(k.lock(c, "order of "+k.name))
			}
			for range 2 {
				for what, call := range calls {
					closeIdle(t, s)
					require.NoError(t, call(), what)
				}
			}
			unlock(t, held)
		})
	}
}

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

// An acquisition that waits for replicas has a connection of a pool.
func TestFirstCommandOnAnIdleConnectionOfThePoolSucceeds(t *testing.T) {
	t.Parallel()
	inBubbleWith(t, func(*rueidis.ClientOption) {}, rlock.Options{SyncReplicas: 1},
		func(t *testing.T, b *bubble, _ rueidis.Client, c *rlock.Client) {
			replicas(b, true)
			for range 3 {
				hold, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, time.Minute)
				require.NoError(t, err)
				unlock(t, hold)
				b.server.Disconnect()
			}
		})
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
