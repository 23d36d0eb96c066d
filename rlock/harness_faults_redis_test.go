//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// asUser makes a client connect as the user that restrict makes.
func asUser(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }

// restrict makes a user that may do everything but what the ACL rules forbid.
func restrict(t testing.TB, s *redistest.Server, rules ...string) {
	t.Helper()
	user := []string{
		"ACL", "SETUSER", "app", "reset", "on", ">secret", "allkeys", "allchannels", "+@all"}
	s.Do(t, append(user, rules...)...)
}

// requireRefusal requires that err is the server's refusal with the given code, and has advice.
func requireRefusal(t testing.TB, err error, code string) {
	t.Helper()
	var refusal *rlock.ServerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, "%v", err)
	require.NotEmpty(t, refusal.Advice)
	require.ErrorContains(t, err, refusal.Advice)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

// requireRefusedAtOnce requires that a wait ends with a refusal long before its time.
func requireRefusedAtOnce(t testing.TB, l *rlock.Lock, code string) {
	t.Helper()
	start := time.Now()
	_, err := l.TryLock(t.Context(), 2*longWait, time.Second)
	requireRefusal(t, err, code)
	require.Less(t, time.Since(start), longWait)
}
