//go:build redis

package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLocksFollowAnEndpointThatMoves(t *testing.T) {
	t.Parallel()
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, replicas := startReplicated(t, 1)
			at := redistest.NewEndpoint(master)
			options := rlock.Options{WatchdogLease: 6 * time.Second}
			holder := newClient(t, master, options, variant, at.Use)
			waiting := newClient(t, master, options, variant, at.Use)
			idle := newClient(t, master, options, variant, at.Use)
			renewed, explicit := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
			waiters := make(map[string]<-chan outcome)
			var renewals []*rlock.Hold
			for _, k := range contests() {
				renewed[k.name] = take(t, k.lock(holder, "renewed "+k.name), rlock.Watchdog)
				renewals = append(renewals, renewed[k.name])
				explicit[k.name] = take(t, k.contender(holder, k.name), time.Minute)
				waiters[k.name] = lockInBackground(t.Context(), k.lock(waiting, k.name), time.Minute)
				k.waitForListeners(t, master, k.name, 1)
			}
			unlock(t, take(t, idle.NewLock("idle"), time.Minute))

			redistest.Promote(t, master, replicas[0])
			early := lockInBackground(t.Context(), idle.NewLock("early"), time.Minute)
			eventually(t, func() bool {
				info, err := master.Call("INFO", "errorstats")
				text, _ := info.(string)
				return err == nil && strings.Contains(text, "errorstat_READONLY")
			}, "the old master rejects no write")
			at.Move(replicas[0])

			unlock(t, acquired(t, early))
			unlock(t, acquired(t, lockInBackground(t.Context(), waiting.NewLock("moves"), time.Minute)))
			for _, k := range contests() { // messages come from the server that has the locks now
				k.waitForListeners(t, replicas[0], k.name, 1)
			}
			for _, k := range contests() {
				eventually(t, func() bool {
					lock := k.lock(idle, "no wait "+k.name)
					hold, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
					return err == nil && hold.Unlock(t.Context()) == nil
				}, "it does not succeed without a wait")
			}
			waitForRenewal(t, renewals)
			for _, k := range contests() {
				require.NoError(t, explicit[k.name].Extend(t.Context(), time.Minute), k.name)
				unlock(t, explicit[k.name])
				next := acquired(t, waiters[k.name])
				require.Equal(t, k.hash(next.Owner(), 1), replicas[0].DoMap(t, "HGETALL", k.name))
				forced, err := k.lock(idle, "renewed "+k.name).ForceUnlock(t.Context())
				require.NoError(t, err)
				require.True(t, forced)
				unlock(t, next)
			}
		})
	}
}

func TestEndpointIsFollowedOnceThePoolHasAConnection(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	at := redistest.NewEndpoint(master)
	redis := master.Client(t, at.Use, redistest.OneConnection,
		func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	c := newClientOn(t, redis, rlock.Options{})
	hold := take(t, c.NewLock("order"), time.Minute)
	application, release := redis.Dedicate()
	require.NoError(t, application.Do(t.Context(), application.B().Ping().Build()).Error())

	redistest.Promote(t, master, replicas[0])
	at.Move(replicas[0])
	_, err := c.NewLock("another").TryLock(t.Context(), rlock.NoWait, time.Minute)
	requireRefusal(t, err, "READONLY")
	waiter := lockInBackground(t.Context(), c.NewLock("another"), time.Minute)
	release()
	unlock(t, acquired(t, waiter))
	unlock(t, hold)
}
