package rlocktest

import (
	"log/slog"
	"sync"
	"testing"
)

// testLog is a writer to the log of a test, until that ends.
type testLog struct {
	t testing.TB

	mu    sync.Mutex
	ended bool // guarded by mu
}

func (l *testLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write writes one message. A test must not log after its end, as a call that it has left behind
// could.
func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(line), nil
	}
	return l.t.Output().Write(line)
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
