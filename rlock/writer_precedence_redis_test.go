//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestWriterThatLeavesLetsReadersInAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	for name, way := range map[string]struct {
		wait  func(*rlock.Lock) (*rlock.Hold, error)
		leave func(*testing.T, *rlock.Client)
		err   error
	}{
		"because its time is over": {
			func(l *rlock.Lock) (*rlock.Hold, error) {
				// Readers that nobody wakes ask 5 s after they came, and so 3 s later.
				return l.TryLock(context.Background(), 2*time.Second, time.Minute)
			},
			func(*testing.T, *rlock.Client) {}, rlock.ErrNotAcquired,
		},
		"because its context ends": {
			func(l *rlock.Lock) (*rlock.Hold, error) { return l.Lock(ctx, time.Minute) },
			func(*testing.T, *rlock.Client) { cancel() }, context.Canceled,
		},
		"because its client closes": {
			func(l *rlock.Lock) (*rlock.Hold, error) { return l.Lock(context.Background(), time.Minute) },
			func(t *testing.T, c *rlock.Client) { closeClient(t, c) }, rlock.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{})
			var writer <-chan outcome
			reader, behind := readersBehindAWriter(t, s, func() {
				writer = inBackground(
					func() (*rlock.Hold, error) { return way.wait(c.NewReadWriteLock("page").Write()) },
				)
			})
			way.leave(t, c)
			o := result(t, writer)
			require.ErrorIs(t, o.Err, way.err)
			for _, reader := range behind {
				read := result(t, reader)
				require.NoError(t, read.Err)
				require.Less(t, read.At.Sub(o.At), promptly)
				unlock(t, read.Hold)
			}
			require.True(t, reader.Valid())
			unlock(t, reader)
			require.False(t, exists(s, ownKeys+"writer:{page}"))
		})
	}
}

func TestWriterWhoseProcessDiedHoldsReadersBackForSeconds(t *testing.T) {
	t.Parallel()
	const lapse = 7 * time.Second // since its last request
	s := redistest.Start(t)
	var writer *process
	_, behind := readersBehindAWriter(t, s,
		func() { writer = startProcess(t, "waiting writer", s.Addr()) })
	require.NoError(t, writer.Kill())
	died := time.Now()
	for _, reader := range behind {
		select {
		case o := <-reader:
			require.NoError(t, o.Err)
			unlock(t, o.Hold)
		case <-time.After(time.Until(died.Add(2 * lapse))): // the first reader reads for minutes
			require.FailNow(t, "a dead writer still holds readers back")
		}
	}
}
