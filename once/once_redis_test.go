//go:build redis

package once_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/redistest"
	"holdfast/once"
	"holdfast/rlock"
)

// limited returns clients of a user with the rights that docs/permissions.md lists for keys that
// begin with "order:", and with more rules.
func limited(t *testing.T, s *redistest.Server, more ...string) (clients [2]*rlock.Client) {
	t.Helper()
	lines := append(doctable.Rules(t, "..", "Keys of package once"),
		doctable.Rules(t, "..", "Create the user")...)
	s.Do(t, slices.Concat([]string{"ACL", "SETUSER", "shop", "reset", "resetchannels", "on",
		">secret"}, slices.Concat(lines...), more)...)
	for i := range clients {
		redis := s.Client(t, func(o *rueidis.ClientOption) {
			o.Username, o.Password = "shop", "secret"
		})
		client, err := rlock.New(redis, rlock.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(context.Background()) })
		clients[i] = client
	}
	return clients
}

func TestListedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var runs atomic.Int64
	var callers sync.WaitGroup
	for _, client := range limited(t, s) {
		for range 2 {
			callers.Go(func() {
				result, err := once.Do(t.Context(), client, "order:42", ttl,
					counted(&runs, 100*time.Millisecond))
				if err != nil || result != 1 {
					t.Error(result, err)
				}
			})
		}
	}
	callers.Wait()
	for _, entry := range s.Do(t, "ACL", "LOG").([]any) { // not even where a script can do without
		fields := entry.([]any)
		object := fields[slices.Index(fields, any("object"))+1]
		require.Regexp(t, `^cluster\b`, object, "%v: not rueidis' question for one", fields)
	}
}

func TestMissingPermissionComesThrough(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var runs atomic.Int64
	for i, rule := range []string{"-get", "-set", "-time", "-hset"} {
		client := limited(t, s, rule)[0]
		_, err := once.Do(t.Context(), client, "order:42", ttl, counted(&runs, 0))
		var rejected *rlock.ServerError
		require.ErrorAs(t, err, &rejected, i)
		require.Equal(t, "NOPERM", rejected.Code)
		require.ErrorIs(t, err, rlock.ErrNotRun)
	}
	require.Zero(t, runs.Load())

	client := limited(t, s)[0]
	result, err := once.Do(t.Context(), client, "order:42", ttl,
		func(context.Context) (int, error) {
			s.Do(t, "ACL", "SETUSER", "shop", "-set")
			return 7, nil
		})
	var rejected *rlock.ServerError
	require.ErrorAs(t, err, &rejected)
	require.ErrorIs(t, err, once.ErrNotRecorded)
	require.Equal(t, 7, result)
}

func TestKeysWorkOnACluster(t *testing.T) {
	t.Parallel()
	client, err := rlock.New(redistest.StartCluster(t, 3).Client(t), rlock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	for _, key := range []string{"order:42", "order:43", "{order}:44", "a}b"} {
		var runs atomic.Int64
		for range 2 {
			result, err := once.Do(t.Context(), client, key, ttl, counted(&runs, 0))
			if key == "a}b" {
				require.ErrorIs(t, err, rlock.ErrInvalid)
				require.ErrorIs(t, err, rlock.ErrNotRun)
				continue
			}
			require.NoError(t, err)
			require.EqualValues(t, 1, result)
		}
	}
}
