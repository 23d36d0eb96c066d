package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"holdfast/cmd/holdfast/internal/status"
)

// logger returns a logger that prints what the library warns of, as messages of the program.
func logger() *slog.Logger { return slog.New(warnings{}) }

// warnings is a [slog.Handler].
type warnings struct{}

func (warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	if strings.HasPrefix(text, "holdfast: lock ") && strings.Contains(text, ": lost: ") {
		return nil // the loss of the lock, which is reported with what follows from it
	}
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.DeadlineExceeded) {
			a.Value = slog.StringValue("the server did not reply in time")
		}
		text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	status.Print(os.Stderr, text)
	return nil
}

func (h warnings) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h warnings) WithGroup(string) slog.Handler      { return h }
