package rlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/owner"
	"holdfast/internal/printable"
	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// evil moves the cursor of a terminal, reverses a line, and is long.
var evil = "\x1b[2J\u202e\n" + strings.Repeat("x", 1<<20)

// Whatever Redis has of a lock, anybody may have written it.
func TestErrorsEscapeAndShortenWhatComesFromRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	own := take(t, c.NewLock("mine"), longLease)
	client, _, _ := strings.Cut(own.Owner(), ":")
	s.Do(t, "HSET", lua.ClientKey("stranger"), "host", evil, "label", evil, "pid", "1")
	for _, holder := range []string{"stranger:" + evil, client + ":" + evil} {
		for _, lock := range []rlock.Locker{c.NewLock("order"), c.NewFairLock("order"),
			c.NewReadWriteLock("order").Write()} {
			s.Do(t, "DEL", "order")
			s.Do(t, "HSET", "order", holder, "1")
			_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			requirePrintable(t, err)
		}
	}
	identity, err := lua.ReadIdentity(t.Context(), s.Client(t), "stranger")
	require.NoError(t, err)
	require.Equal(t, printable.Text(identity.String()), identity.String())
	require.Less(t, len(identity.String()), 1000)

	s.Do(t, "DEL", "order")
	s.Do(t, "HSET", "order", evil, evil)
	_, err = c.NewLock("order").Info(t.Context())
	requirePrintable(t, err)
	unlock(t, own)
}

// A server may reply what no script of ours does, for instance a text that is not cut off.
func TestErrorsAndLogsEscapeAndShortenWhatAServerReplies(t *testing.T) {
	evil := evil[:10_000]
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		own := take(t, b.lock, rlock.Watchdog)
		client, _, _ := strings.Cut(own.Owner(), ":")
		held := heldFor(30_000)
		for holder, warning := range map[string]string{
			client + ":": "waited for longer than Options.WatchdogLease",
			fmt.Sprintf("stranger:%d:", owner.Number(owner.Fair, 1)): "the name is held as a fair lock",
		} {
			b.reply("acquire.lua", func(args []string) any {
				reply := held(args).([]any)
				reply[1] = holder + evil
				return reply
			})
			_, err := b.lock.TryLock(t.Context(), time.Minute, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			requirePrintable(t, err)
			lines := log.With(warning)
			require.Len(t, lines, 1)
			message, attributes, _ := strings.Cut(lines[0], `" lock=`)
			require.NotRegexp(t, `[^\\]\\(x1b|u202e|n)`, message, "the logger had to escape it")
			require.NotContains(t, attributes, `"`, "the logger had to escape it")
			require.Less(t, len(lines[0]), 2000)
		}
		for _, wrong := range []func(reply []any) any{
			func([]any) any { return errors.New("ERR " + strings.ReplaceAll(evil, "\n", "")) },
			func(reply []any) any {
				if len(reply) > 3 {
					reply[3] = evil // the ticket
				}
				return reply
			},
		} {
			b.reply("acquire.lua", func(args []string) any { return wrong(held(args).([]any)) })
			_, err := b.lock.TryLock(t.Context(), time.Second, longLease)
			require.ErrorContains(t, err, "xxx")
			requirePrintable(t, err)
		}
	})
}

// requirePrintable asserts that a text may be shown to a person.
func requirePrintable(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, printable.Text(err.Error()), err.Error())
	require.Less(t, len(err.Error()), 1200)
}
