package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestSmoke(t *testing.T) {
	var clients []*rlock.Client
	var servers []*redistest.Server
	for range 5 {
		s := redistest.Start(t)
		servers = append(servers, s)
		c, err := rlock.New(s.Client(t), rlock.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
		clients = append(clients, c)
	}
	l := redlock.NewOn("order", redlock.Options{FsyncAlways: true}, clients...)
	h, err := l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	t.Log(h.Owner(), time.Until(h.Deadline()))
	start := time.Now()
	_, err = l.TryLock(t.Context(), 30*time.Millisecond, rlock.Watchdog)
	t.Log(time.Since(start), err)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	h2, err := l.TryLock(h.Context(), rlock.NoWait, 10*time.Second)
	require.NoError(t, err)
	require.NoError(t, h2.Extend(t.Context(), 15*time.Second))
	require.NoError(t, l.Unlock(h2.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h, err := l.Lock(t.Context(), rlock.Watchdog)
		t.Log("handed over after", time.Since(start), err)
		if err == nil {
			err = h.Unlock(t.Context())
		}
		t.Log(err)
	}()
	time.Sleep(100 * time.Millisecond)
	start = time.Now()
	require.NoError(t, h.Unlock(t.Context()))
	<-done
	servers[0].Kill(t)
	start = time.Now()
	h, err = l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	t.Log("one dead", time.Since(start))
	require.NoError(t, h.Unlock(t.Context()))
	servers[1].Pause(t)
	start = time.Now()
	h, err = l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	t.Log("one dead, one hung", time.Since(start))
	require.NoError(t, h.Unlock(t.Context()))
	servers[2].Pause(t)
	time.Sleep(60 * time.Millisecond)
	start = time.Now()
	_, err = l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	t.Log("one dead, two hung", time.Since(start), err)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	servers[1].Resume(t)
	servers[2].Resume(t)
	start = time.Now()
	h, err = l.TryLock(t.Context(), time.Second, rlock.Watchdog)
	require.NoError(t, err)
	t.Log("resumed", time.Since(start))
	_, err = clients[1].NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Err())
	_, err = clients[2].NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	<-h.Done()
	t.Log(h.Err())
	require.ErrorIs(t, h.Unlock(t.Context()), rlock.ErrLost)
	for _, s := range servers[1:] {
		require.Eventually(t, func() bool { return len(s.Do(t, "KEYS", "*").([]any)) == 0 }, time.Second, time.Millisecond)
	}
	def := redlock.NewOn("order", redlock.Options{}, clients...)
	_, err = def.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	t.Log(err)
	var delayed *redlock.DelayedError
	require.ErrorAs(t, err, &delayed)
}
