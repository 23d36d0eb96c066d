package doctor

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// warnings collects what the lock clients log. The zero value is ready for use.
type warnings struct {
	mu  sync.Mutex
	all []refusal // guarded by mu
}

// refusal is a warning, and the error of the server that it reports.
type refusal struct{ message, error string }

// Enabled reports whether a level is that of a warning, or worse.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle collects a warning.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	f := refusal{message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "refusal" || a.Key == "error" {
			f.error = a.Value.String()
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, f)
	return nil
}

// WithAttrs returns w: attributes of a logger are not shown.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup returns w: groups are not shown.
func (w *warnings) WithGroup(string) slog.Handler { return w }

// with returns the error in the first warning that contains one of the texts, or "".
func (w *warnings) with(texts ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.all {
		for _, text := range texts {
			if strings.Contains(f.message, text) {
				return cmp.Or(f.error, f.message)
			}
		}
	}
	return ""
}
