package rlock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

const wasDropped = "a hold was dropped without Unlock"

// renewals lets that many renewals pass, each after a garbage collection, or fewer if done.
func renewals(n int, done func() bool) {
	for ; n > 0 && !done(); n-- {
		runtime.GC()
		time.Sleep(10 * time.Second) // of the bubble
	}
}

// What was found dropped is still lost when Redis says so, and a caller that waits learns of it.
func TestHoldThatWasFoundDroppedCanBeLost(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-locktest.AcquireUnkept(rlock.WithOwner(t.Context()), t, b.lock).Context().Done()
		}()
		renewals(300, func() bool { return len(log.With(wasDropped)) > 0 })
		_, err := b.lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		<-ended
	})
}
