package demo

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// The marker records who is inside, as the processes themselves report it: one name for the process
// that is alone, and a set of names for readers. Processes write first and then look, so that of
// two that should not meet, one sees the other.

// enter marks this process as being inside and returns the name that it found there: none, unless
// the two should not meet. Readers ignore each other.
func (w *worker) enter(ctx context.Context) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	marker, readers := markerKey(w.part.Prefix, w.part.Lock), readersKey(w.part.Prefix, w.part.Lock)
	if w.part.Type == reading {
		if err := w.redis.Do(ctx,
			w.redis.B().Sadd().Key(readers).Member(w.part.Process).Build()).Error(); err != nil {
			return "", fmt.Errorf("set the reader's marker: %w", err)
		}
		if err := w.limitLife(ctx, readers); err != nil {
			return "", err
		}
		return w.markerOf(ctx, marker)
	}
	found, err = w.redis.Do(ctx,
		w.redis.B().Getset().Key(marker).Value(w.part.Process).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", fmt.Errorf("set the marker: %w", err)
	}
	if err := w.limitLife(ctx, marker); err != nil {
		return "", err
	}
	if found == "" && w.part.Type == writing {
		return w.reader(ctx, readers)
	}
	return found, nil
}

// exit removes the marker and returns its name: this process, unless another came in that should
// have stayed out.
func (w *worker) exit(ctx context.Context) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	marker, readers := markerKey(w.part.Prefix, w.part.Lock), readersKey(w.part.Prefix, w.part.Lock)
	found, err = w.markerOf(ctx, marker)
	switch {
	case err != nil:
		return "", err
	case w.part.Type == reading:
		if err := w.redis.Do(ctx,
			w.redis.B().Srem().Key(readers).Member(w.part.Process).Build()).Error(); err != nil {
			return "", fmt.Errorf("remove the reader's marker: %w", err)
		}
		if found == "" {
			found = w.part.Process
		}
		return found, nil
	case found == "":
		found = "nobody" // another process came in and left
	case found == w.part.Process && w.part.Type == writing:
		reader, err := w.reader(ctx, readers)
		if err != nil {
			return "", err
		}
		if reader != "" {
			found = reader
		}
	}
	if err := w.redis.Do(ctx, w.redis.B().Del().Key(marker).Build()).Error(); err != nil {
		return "", fmt.Errorf("remove the marker: %w", err)
	}
	return found, nil
}

// markerOf returns the process that is inside alone; "" if none is.
func (w *worker) markerOf(ctx context.Context, marker string) (string, error) {
	found, err := w.redis.Do(ctx, w.redis.B().Get().Key(marker).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", fmt.Errorf("get the marker: %w", err)
	}
	return found, nil
}

// reader returns one of the readers inside; "" if there is none.
func (w *worker) reader(ctx context.Context, readers string) (string, error) {
	names, err := w.redis.Do(ctx, w.redis.B().Smembers().Key(readers).Build()).AsStrSlice()
	if err != nil {
		return "", fmt.Errorf("look for readers: %w", err)
	}
	if len(names) == 0 {
		return "", nil
	}
	return names[0], nil
}

// limitLife makes a key expire, should the demo not clean up.
func (w *worker) limitLife(ctx context.Context, key string) error {
	life := int64(keyLife.Seconds())
	if err := w.redis.Do(ctx,
		w.redis.B().Expire().Key(key).Seconds(life).Build()).Error(); err != nil {
		return fmt.Errorf("limit the life of %s: %w", key, err)
	}
	return nil
}
