package demo

import (
	"context"
	"strings"
	"time"

	"holdfast/once"
)

// oncePrefix is what package once puts before a key to name its lock.
const oncePrefix = "once:"

// ask asks for the result of a key. The function is a section, and its result is the process that
// ran it.
func (w *worker) ask(ctx context.Context, s section) error {
	if err := w.pause(ctx, s.Before); err != nil {
		return err
	}
	w.emit(event{Kind: waiting})
	key := strings.TrimPrefix(w.part.Names[0], oncePrefix)
	by, err := once.Do(ctx, w.client, key, time.Minute, func(ctx context.Context) (string, error) {
		found, err := w.mark(ctx, true)
		w.emit(event{Kind: entered, Found: found})
		if err == nil {
			err = w.count(ctx, false)
		}
		if err == nil {
			err = w.pause(ctx, s.Inside)
		}
		if err == nil {
			found, err = w.mark(ctx, false)
		}
		w.emit(event{Kind: leaving, Found: found})
		return w.part.Process, err
	})
	switch {
	case err != nil:
		return err
	case by == w.part.Process:
		w.emit(event{Kind: left})
	default:
		w.emit(event{Kind: served, By: by})
	}
	return nil
}
