package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/survey"
	"holdfast/lua"
)

// ChangedError reports that a lock is not held as the caller believed, so that nothing was done.
type ChangedError struct{ Now Lock }

// Error returns the text of the error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("lock %q: this owner does not hold the lock", e.Now.Name)
}

// Unlock takes a lock away from an owner, all its levels at once, and wakes waiters as a release by
// that owner does. With the owner "" it takes the lock from all that hold it, unless another has
// acquired it since it was read; readers may come and go. It returns the lock as it was just
// before, and the server's refusal to wake waiters, "" if there is none: after one they look for
// themselves, within 5 s. If the lock is not held so, the error is a *[ChangedError].
//
// A holder that lives notices at its next renewal that the lock is lost.
func Unlock(ctx context.Context, redis rueidis.Client, lock Lock, owner string,
) (before Lock, refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := newReader(ctx, redis)
	if err != nil {
		return Lock{}, "", err
	}
	defer r.close()
	before, err = r.inspect(ctx, lock.Name)
	if err != nil {
		return before, "", err
	}
	if owner == "" && writerOf(lock) != writerOf(before) {
		return before, "", &ChangedError{before}
	}
	var out lua.Released
	switch modes := modesOf(before, owner); {
	case owner == "":
		out, err = r.forceUnlock(ctx, before)
	case len(modes) > 0:
		// A writer that reads gives back the read lock first, which wakes nobody, so that it never
		// is a reader without the write lock.
		for _, mode := range modes {
			out, err = r.release(ctx, before, owner, mode)
			if err != nil {
				return before, "", err
			}
		}
	}
	if err == nil && !out.Held {
		before, err = r.inspect(ctx, lock.Name)
		if err == nil {
			err = &ChangedError{before}
		}
	}
	return before, out.Refusal, err
}

// writerOf returns the owner that holds a lock alone; "" if it is free or read.
func writerOf(l Lock) string {
	for _, h := range l.Holders {
		if h.Mode != "read" {
			return h.Owner
		}
	}
	return ""
}

// modesOf returns the modes in which an owner holds a lock, "read" before "write".
func modesOf(l Lock, owner string) (modes []string) {
	for _, h := range l.Holders {
		switch {
		case h.Owner != owner:
		case h.Mode == "read":
			modes = append([]string{h.Mode}, modes...)
		default:
			modes = append(modes, h.Mode)
		}
	}
	return modes
}

// release releases all levels of an owner in one mode.
func (r *reader) release(ctx context.Context, l Lock, owner, mode string) (lua.Released, error) {
	switch {
	case mode == "read":
		return r.readWrite(l.Name).ReleaseRead(ctx, r.redis, owner, 0)
	case mode == "write":
		return r.readWrite(l.Name).ReleaseWrite(ctx, r.redis, owner, 0, "", 0)
	case l.Kind == survey.KindFair:
		return r.fair(l.Name).Release(ctx, r.redis, 0, owner)
	}
	// It is announced even where registered waiters could be granted it: they hear that as well, and
	// it takes no more rights than the lock itself.
	return lua.NewExclusive(l.Name, false).Release(ctx, r.redis, owner, 0,
		lua.HandOver{Channels: r.transport.Channels()})
}

// forceUnlock frees a lock of all that hold it.
func (r *reader) forceUnlock(ctx context.Context, l Lock) (lua.Released, error) {
	switch mode := l.Mode(); {
	case len(l.Holders) == 0:
		return lua.Released{}, nil
	case mode != "":
		return r.readWrite(l.Name).ForceUnlock(ctx, r.redis, mode)
	case l.Kind == survey.KindFair:
		return r.fair(l.Name).ForceUnlock(ctx, r.redis)
	}
	return lua.NewExclusive(l.Name, false).ForceUnlock(ctx, r.redis, r.transport.Channels())
}

func (r *reader) fair(name string) lua.Fair {
	to := r.transport.HandOvers()
	return lua.Fair{Lock: name, Channels: to.Channels, Counted: to.Counted}
}

// readWrite lets readers that waited pass when a writer leaves, as any Bound does.
func (r *reader) readWrite(name string) lua.ReadWrite {
	return lua.ReadWrite{Lock: name, Channels: r.transport.Channels(), Bound: time.Second}
}
