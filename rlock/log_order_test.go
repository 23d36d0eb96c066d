package rlock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// gatedHandler handles what is logged once its gate is open.
type gatedHandler struct {
	slog.Handler
	gate     chan struct{}
	messages []string
	each     func(message string)
}

func (h *gatedHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.gate
	h.messages = append(h.messages, r.Message) // without a mutex: one call at a time
	if h.each != nil {
		h.each(r.Message)
	}
	return nil
}

func newGatedHandler() *gatedHandler {
	return &gatedHandler{Handler: slog.Default().Handler()}
}

func TestWarningsBeyondALimitAreCountedWhileTheLogHandlerBlocks(t *testing.T) {
	handler := newGatedHandler()
	inBubble(t, rlock.Options{Logger: slog.New(handler)}, func(t *testing.T, b *bubble) {
		handler.gate = make(chan struct{}) // of the bubble
		open := sync.OnceFunc(func() { close(handler.gate) })
		defer open()
		rlock.Warn(b.client, "first")
		synctest.Wait()
		for range rlock.MostUnlogged + 5 {
			rlock.Warn(b.client, "more")
		}
		open()
		synctest.Wait()
		require.Len(t, handler.messages, 1+rlock.MostUnlogged+1)
		require.Contains(t, handler.messages[1+rlock.MostUnlogged], "5 warnings were left out")
		rlock.Warn(b.client, "last")
		closeClient(t, b.client)
		require.Equal(t, "last", handler.messages[2+rlock.MostUnlogged], "Close did not wait for it")
	})
}
