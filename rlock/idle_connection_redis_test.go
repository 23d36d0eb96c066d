//go:build redis

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
