//go:build redis

package rlock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Only the first reader of a client asks, so the others were never refused themselves. They waited
// all the same, and have their turn with the first when the writer leaves, before another writer
// that waits. The turn takes 100 ms, less than a busy machine may stand still.
func TestReadersQueuedBehindOneOfTheirClientHaveTheirTurnToo(t *testing.T) {
	t.Parallel()
	const readers = 5
	s := redistest.Start(t)
	near, far := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	lock := far.NewReadWriteLock("page").Read()
	bestOf(t, promptly, func() time.Duration {
		writer := take(t, near.NewReadWriteLock("page").Write(), time.Minute)
		waiting := []<-chan outcome{lockInBackground(t.Context(), lock, time.Minute)}
		waitForParked(t, s, 1)
		waitForQuiet(t, s) // the first has asked again, and now waits
		for range readers - 1 {
			waiting = append(waiting, lockInBackground(t.Context(), lock, time.Minute))
		}
		eventually(t, func() bool { return rlock.Waiting(lock) == readers }, "all stand in line")

		// Another writer began to wait when there were readers. Without a turn they let it pass.
		since := strconv.FormatInt(time.Now().UnixMilli(), 10)
		s.Do(t, "SET", ownKeys+"writer:{page}", since+" another client:1", "PX", "3000")
		unlock(t, writer)
		released := time.Now()
		var last time.Duration
		for _, reader := range waiting {
			o := result(t, reader)
			require.NoError(t, o.Err)
			last = max(last, o.At.Sub(released))
			defer unlock(t, o.Hold)
		}
		s.Do(t, "DEL", ownKeys+"writer:{page}")
		return last
	})
}
