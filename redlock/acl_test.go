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
	for name, c := range map[string]struct {
		rows    []string
		options redlock.Options
		needs   string // what is missing without the last row
	}{
		"delayed restart": {
			[]string{"every lock", "plain locks", "a RedLock"},
			redlock.Options{MaxLease: time.Second},
			"+info",
		},
		"epoch": {
			[]string{"every lock", "plain locks", "a RedLock", "its `Options.Epoch`"},
			redlock.Options{MaxLease: time.Second, Epoch: true}, "NOPERM",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 1)
			permit := func(rows ...string) {
				// Before Redis 7 a new user may have all channels.
				servers[0].Do(
					t,
					append(
						[]string{
							"ACL", "SETUSER", "app", "reset", "resetchannels", "on", ">secret",
						},
						listedRules(t, rows...)...)...)
			}
			permit(c.rows...)
			client, err := rlock.New(
				servers[0].Client(t,
					func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }),
				rlock.Options{WatchdogLease: time.Second},
			)
			require.NoError(t, err)
			t.Cleanup(func() { closeClient(t, client) })
			options := c.options
			options.NodeTimeout = 3 * time.Second
			lock := redlock.NewOn("order:"+name, options, client)
			// when the server has been up long enough
			hold, err := lock.Lock(t.Context(), rlock.Watchdog)
			require.NoError(t, err)
			require.NoError(t, hold.Unlock(t.Context()))

			permit(c.rows[:len(c.rows)-1]...)
			_, err = lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
			require.ErrorContains(t, err, c.needs, "at once: waiting does not help")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		})
	}
}
