// Package logtest collects what is logged, for tests.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
)

// Lines has the logged lines. The zero value is ready for use, and safe for concurrent use.
type Lines struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

// Logger returns a logger that writes to l.
func (l *Lines) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write takes one line.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// With returns the lines that contain text.
func (l *Lines) With(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
