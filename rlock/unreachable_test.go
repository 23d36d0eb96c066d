//go:build redis

package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// dialTimeout is longer than any wait of these tests.
const dialTimeout = 5 * time.Second

// newForcedClient returns a client even if its server is out of reach: rueidis returns one with an
// error then.
func newForcedClient(
	t testing.TB, option rueidis.ClientOption, options rlock.Options,
) *rlock.Client {
	t.Helper()
	option.ForceSingleClient = true
	redis, err := rueidis.NewClient(option)
	if redis == nil {
		require.NoError(t, err)
	}
	t.Cleanup(redis.Close)
	return newClientOn(t, redis, options)
}

// requireTimely requires that TryLock fails within its wait, and without wait within the command
// time-out of a second, and that each error passes the check.
func requireTimely(t testing.TB, l *rlock.Lock, check func(testing.TB, error)) {
	t.Helper()
	const limit = time.Second
	const scheduling = 2 * time.Second // of a busy machine; the dial would take longer
	for _, wait := range []time.Duration{rlock.NoWait, limit} {
		start := time.Now()
		_, err := l.TryLock(t.Context(), wait, time.Minute)
		require.Error(t, err)
		require.Less(t, time.Since(start), limit+scheduling, "%v", err)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		check(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	_, err := l.Lock(ctx, time.Minute)
	require.Error(t, err)
	require.Less(t, time.Since(start), limit+scheduling, "%v", err)
	check(t, err)
}

// saying checks that an error gives this advice.
func saying(advice string) func(testing.TB, error) {
	return func(t testing.TB, err error) {
		t.Helper()
		require.ErrorContains(t, err, advice)
		var refusal *rlock.ServerError
		require.ErrorAs(t, err, &refusal)
	}
}

func TestUnreachableServerIsAnErrorThatSaysWhatToDoWithinTheWait(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		option func(t testing.TB) rueidis.ClientOption
		advice string
	}{
		"wrong password": {func(t testing.TB) rueidis.ClientOption {
			option := redistest.Start(t, redistest.WithPassword("right")).ClientOption()
			option.Password = "wrong"
			return option
		}, "user name or password is wrong"},
		"no password": {func(t testing.TB) rueidis.ClientOption {
			option := redistest.Start(t, redistest.WithPassword("right")).ClientOption()
			option.Password = ""
			return option
		}, "set rueidis.ClientOption.Password"},
		"TLS not given": {func(t testing.TB) rueidis.ClientOption {
			option := redistest.Start(t, redistest.WithTLS()).ClientOption()
			option.TLSConfig = nil
			return option
		}, "rueidis.ClientOption.TLSConfig"},
		// Redis takes the greeting for the beginning of a long line, and waits for its end.
		"TLS not wanted": {func(t testing.TB) rueidis.ClientOption {
			option := redistest.Start(t).ClientOption()
			option.TLSConfig = &tls.Config{InsecureSkipVerify: true}
			return option
		}, "rueidis.ClientOption.TLSConfig"},
		"TLS not trusted": {func(t testing.TB) rueidis.ClientOption {
			option := redistest.Start(t, redistest.WithTLS()).ClientOption()
			option.TLSConfig = &tls.Config{}
			return option
		}, "certificate is not trusted"},
		"refused": {func(t testing.TB) rueidis.ClientOption {
			s := redistest.Start(t)
			s.Kill(t)
			return s.ClientOption()
		}, "is the server up, and is the address right?"},
		"silent": {func(t testing.TB) rueidis.ClientOption {
			return rueidis.ClientOption{InitAddress: []string{silent(t)}}
		}, "reply"}, // "no reply …", or "… did not reply …" when rueidis finds out first
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			option := c.option(t)
			option.Dialer.Timeout = dialTimeout
			client := newForcedClient(t, option, rlock.Options{CommandTimeout: time.Second})
			requireTimely(t, client.NewLock("job"), saying(c.advice))
		})
	}
}

// silent returns the address of a listener whose connections the system accepts, but nobody serves.
func silent(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

func TestPasswordChangedWhileRunningIsRefusedUntilItIsChangedBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("right"))
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second, Logger: log.Logger()})
	hold := take(t, c.NewLock("kept"), rlock.Watchdog)
	released := take(t, c.NewLock("released"), time.Minute)

	changePassword(t, s, "right", "changed")
	requireRefusedEventually(t, c.NewLock("other"), "WRONGPASS")
	requireRefusal(t, released.Unlock(t.Context()), "WRONGPASS")
	eventually(t, func() bool { return len(log.With("leases not renewed")) > 0 },
		"the failed renewal was not logged")
	changePassword(t, s, "changed", "right")
	requireKept(t, []*rlock.Hold{hold}, 7*time.Second, "lost, though the trouble was short")
	unlock(t, take(t, c.NewLock("other"), time.Second))
	unlock(t, hold)
}

// changePassword changes the password of a server and ends the connections that were made with the
// old one.
func changePassword(t testing.TB, s *redistest.Server, from, to string) {
	t.Helper()
	option := s.ClientOption()
	option.Password = from
	option.ForceSingleClient = true
	admin, err := rueidis.NewClient(option)
	require.NoError(t, err)
	defer admin.Close()
	b := admin.B()
	require.NoError(t,
		admin.Do(t.Context(), b.Arbitrary("CONFIG", "SET", "requirepass", to).Build()).Error())
	require.NoError(
		t,
		admin.Do(t.Context(), b.Arbitrary("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Build()).
			Error(),
	)
}

// requireRefusedEventually is requireRefusedAtOnce for a connection that was just killed: the first
// command on it may have an unknown outcome.
func requireRefusedEventually(t testing.TB, l *rlock.Lock, code string) {
	t.Helper()
	var err error
	eventually(t, func() bool {
		_, err = l.TryLock(t.Context(), rlock.NoWait, time.Second)
		var refusal *rlock.ServerError
		return errors.As(err, &refusal) && refusal.Code == code
	}, "not refused with "+code)
	requireRefusal(t, err, code)
}
