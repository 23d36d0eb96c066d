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
// that waits.
func TestReadersQueuedBehindOneOfTheirClientHaveTheirTurnToo(t *testing.T) {
	t.Parallel()
	const readers = 5
	s := redistest.Start(t)
	writer := take(t, newClient(t, s, rlock.Options{}).NewReadWriteLock("page").Write(),
		time.Minute)
	c := newClient(t, s, rlock.Options{})
	join := func() <-chan outcome {
		return lockInBackground(t.Context(), c.NewReadWriteLock("page").Read(), time.Minute)
	}
	waiting := []<-chan outcome{join()}
	waitForParked(t, s, 1)
	waitForQuiet(t, s) // the first has asked again, and now waits
	for range readers - 1 {
		waiting = append(waiting, join())
	}
	eventually(t,
		func() bool { return rlock.Waiting(c.NewReadWriteLock("page").Read()) == readers },
		"all stand in line")

	// Another writer began to wait when there were readers.
	since := strconv.FormatInt(time.Now().UnixMilli(), 10)
	s.Do(t, "SET", ownKeys+"writer:{page}", since+" another client:1", "PX", "5000")
	unlock(t, writer)
	released := time.Now()
	for _, reader := range waiting {
		o := result(t, reader)
		require.NoError(t, o.Err)
		require.Less(t, o.At.Sub(released), promptly)
	}
}
