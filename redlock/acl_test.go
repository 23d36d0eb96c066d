//go:build redis

package redlock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// listedRules returns the rules in docs/permissions.md for a RedLock over locks whose names begin
// with "order:".
func listedRules(t testing.TB, rows ...string) []string {
	t.Helper()
	document, err := os.ReadFile("../docs/permissions.md")
	require.NoError(t, err)
	var rules []string
	for _, title := range rows {
		_, row, found := strings.Cut(string(document), "\n| "+title+" |")
		require.True(t, found, title)
		row, _, _ = strings.Cut(row, "\n")
		rules = append(rules, regexp.MustCompile("[+~&][^ `]+").FindAllString(row, -1)...)
	}
	return rules
}

func TestListedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	all := []string{"every lock", "plain locks", "a RedLock", "its `Options.Epoch`"}
	for _, c := range []struct {
		rows    []string
		options redlock.Options
		needs   string // what is missing without the last row
	}{
		{all[:3], redlock.Options{MaxLease: time.Second}, "+info"},
		{all, redlock.Options{MaxLease: time.Second, Epoch: true}, "NOPERM"},
	} {
		t.Run(c.needs, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			permit := func(rows ...string) {
				// Before Redis 7 a new user may have all channels.
				server.Do(t, append([]string{"ACL", "SETUSER", "app", "reset", "resetchannels", "on",
					">secret"}, listedRules(t, rows...)...)...)
			}
			permit(c.rows...)
			client := newClientOn(t, server.Client(t,
				func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }),
				rlock.Options{WatchdogLease: time.Second})
			lock := redlock.NewOn("order:", c.options, client)
			// when the server has been up long enough
			unlock(t, acquired(t, lockInBackground(t.Context(), lock, rlock.Watchdog)))

			permit(c.rows[:len(c.rows)-1]...)
			_, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
			require.ErrorContains(t, err, c.needs, "at once: waiting does not help")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		})
	}
}
