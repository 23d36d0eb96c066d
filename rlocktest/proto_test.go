package rlocktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func run(t *testing.T) {
	start := time.Now()
	s, err := newServer()
	require.NoError(t, err)
	defer s.close()
	r, err := rueidis.NewClient(s.clientOption())
	require.NoError(t, err)
	defer r.Close()
	c, err := rlock.New(r, rlock.Options{})
	require.NoError(t, err)
	defer c.Close(t.Context())
	l := c.NewLock("x")
	h, err := l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	t.Log(time.Since(start))
	go func() {
		h2, err := l.Lock(t.Context(), time.Minute)
		if err == nil {
			h2.Unlock(t.Context())
		}
	}()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, h.Unlock(t.Context()))
	h, err = l.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, h.Unlock(t.Context()))
}

func TestReal(t *testing.T) { run(t); run(t) }
func TestBubble(t *testing.T) {
	start := time.Now()
	synctest.Test(t, func(t *testing.T) {
		run(t)
		time.Sleep(time.Hour)
	})
	t.Log(time.Since(start))
}
