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

// note prints a message that --quiet suppresses.
func (o Options) note(format string, args ...any) {
	if !o.Quiet {
		o.print(slog.LevelInfo, fmt.Sprintf(format, args...))
	}
}

// warn prints a message.
func (o Options) warn(format string, args ...any) {
	o.print(slog.LevelWarn, fmt.Sprintf(format, args...))
}

// print prints a message as a line, or with --log json as an object that has the name of the lock.
func (o Options) print(level slog.Level, text string, attrs ...slog.Attr) {
	if !o.JSON {
		words := []string{text}
		for _, a := range attrs {
			words = append(words, fmt.Sprintf("%s=%v", a.Key, a.Value))
		}
		status.Print(os.Stderr, strings.Join(words, " "))
		return
	}
	text = strings.TrimPrefix(status.Text(text), fmt.Sprintf("lock %q: ", o.Name))
	slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).LogAttrs(
		context.Background(), level, text, append([]slog.Attr{slog.String("lock", o.Name)}, attrs...)...)
}

// report prints an error with --log json, and returns it without its text. Otherwise it leaves that
// to its caller.
func (o Options) report(err error) error {
	if text := status.Message(err); o.JSON && text != "" {
		o.print(slog.LevelError, text, slog.Int("status", status.Code(err)))
		return status.New(status.Code(err), nil)
	}
	return err
}

// logger returns a logger that prints what the library warns of, as messages of the program.
func (o Options) logger() *slog.Logger { return slog.New(warnings{o}) }

// warnings is a [slog.Handler].
type warnings struct{ Options }

func (warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "holdfast: lock ") && strings.Contains(r.Message, ": lost: ") {
		return nil // the loss of the lock, which is reported with what follows from it
	}
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.DeadlineExceeded) {
			a.Value = slog.StringValue("the server did not reply in time")
		}
		attrs = append(attrs, a)
		return true
	})
	w.print(r.Level, r.Message, attrs...)
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
