//go:build redis

package redlock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestListedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	lines := doctable.Rules(t, "..", "RedLocks") // for locks whose names begin with "order:"
	all := slices.Concat(lines[:len(lines)-1]...)
	for _, c := range []struct {
		rules   []string
		options redlock.Options
		without []string // the rules but some
		needs   string   // what is missing then
	}{
		{all, redlock.Options{MaxLease: time.Second}, all[:len(all)-3], "+info"},
		{slices.Concat(lines...), redlock.Options{MaxLease: time.Second, Epoch: true}, all, "NOPERM"},
	} {
		t.Run(c.needs, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			permit := func(rules []string) {
				// Before Redis 7 a new user may have all channels.
				server.Do(t, append([]string{"ACL", "SETUSER", "app", "reset", "resetchannels", "on",
					">secret"}, rules...)...)
			}
			permit(c.rules)
			client := newClientOn(t, server.Client(t,
				func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }),
				rlock.Options{WatchdogLease: time.Second})
			lock := redlock.NewOn("order:", c.options, client)
			eventually(t, func() bool {
				// when the server has been up long enough
				hold := acquired(t, lockInBackground(t.Context(), lock, rlock.Watchdog))
				err := hold.Unlock()
				if !errors.Is(err, rlock.ErrLost) { // which it is if the process stands still
					require.NoError(t, err)
				}
				return err == nil
			}, "it is released before its lease ends")

			permit(c.without)
			_, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
			require.ErrorContains(t, err, c.needs, "at once: waiting does not help")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		})
	}
}
