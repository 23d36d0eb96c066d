package once

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/compose"
	"holdfast/internal/flight"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
)

// hook gives access to the unexported parts of package rlock.
var hook = rlock.Internals(compose.Access{})

// running is a run, and its own key in a context.
type running struct {
	client *rlock.Client
	lock   string
	token  int64
	outer  *running // of the context given to Do
}

// call is a call of [Do].
type call struct {
	settings
	key    string
	ttl    time.Duration
	client *rlock.Client
	lock   *rlock.Lock
	run    string // "" until this call has the lock
	ran    bool   // the function was called
}

// open checks the arguments.
func (c *call) open(client *rlock.Client) error {
	switch {
	case client == nil:
		return compose.Invalid("the client is nil; pass what rlock.New returned")
	case c.key == "":
		return compose.Invalid("the key is empty; pass a key")
	case c.ttl < time.Millisecond:
		return compose.Invalid("ttl must be at least 1ms (got %v)", c.ttl)
	}
	c.client, c.lock = client, client.NewLock("once:"+c.key)
	return nil
}

// do returns the record with the result of the key.
func (c *call) do(ctx context.Context, fn func(context.Context) ([]byte, error),
) (lua.OnceRecord, error) {
	outer, _ := ctx.Value(running{}).(*running)
	for r := outer; r != nil; r = r.outer {
		if r.client == c.client && r.lock == c.lock.Name() {
			return lua.OnceRecord{}, c.notRun(fmt.Errorf("%w: %w: the function of this key called Do "+
				"with the key; use another key", rlock.ErrNotAcquired, rlock.ErrDeadlock))
		}
	}
	all := hook.Flights(c.client)
	fl := all.Join(c.lock.Name())
	defer all.Leave(c.lock.Name(), fl)
	if !fl.Wait(ctx, c.noWait) {
		return c.shared(ctx, fl)
	}
	defer fl.Pass()
	record, err := c.look(ctx)
	if err != nil || !record.Stored { // acquire returns a lasting error
		record, err = c.acquire(ctx, &running{client: c.client, lock: c.lock.Name(), outer: outer}, fn)
		if err != nil {
			return record, err
		}
	}
	all.Land(c.lock.Name(), fl, record)
	return c.matching(record)
}

// shared returns the result of another caller of this client, or why there is none.
func (c *call) shared(ctx context.Context, fl *flight.Flight) (lua.OnceRecord, error) {
	if fl.HasLanded() {
		return c.matching(fl.Record())
	}
	running := fmt.Errorf("%w: another caller of this client is running its function for the key; "+
		"retry later", rlock.ErrNotAcquired)
	if err := ctx.Err(); err != nil {
		return lua.OnceRecord{}, c.notRun(fmt.Errorf("%w: %w", because(ctx), running))
	}
	// The other caller may only be asking for a result that is stored.
	record, err := c.look(ctx)
	switch {
	case err != nil:
		return record, c.notRun(err)
	case record.Stored:
		return c.matching(record)
	}
	return record, c.notRun(running)
}

// because returns the error of an ended context, with its cause.
func because(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (c *call) look(ctx context.Context) (lua.OnceRecord, error) {
	return hook.Once(ctx, c.lock, false,
		func(ctx context.Context, redis rueidis.CoreClient) (lua.OnceRecord, error) {
			return lua.LookOnce(ctx, redis, c.lock.Name())
		})
}

// matching returns the record unless it belongs to another request.
func (c *call) matching(record lua.OnceRecord) (lua.OnceRecord, error) {
	// Without a fingerprint on either side, there is nothing to compare.
	if c.print == noPrint || record.Print == noPrint || record.Print == c.print {
		return record, nil
	}
	err := fmt.Errorf("%w; use a new key for each request", ErrMismatch)
	if c.ran { // and has lost its lock
		return record, c.wrap(fmt.Errorf("%w: %w", ErrNotRecorded, err))
	}
	return record, c.notRun(err)
}

// acquire waits for the lock, and then returns the stored result or runs fn.
func (c *call) acquire(ctx context.Context, r *running, fn func(context.Context) ([]byte, error),
) (record lua.OnceRecord, err error) {
	limit := rlock.Forever
	if c.noWait {
		limit = rlock.NoWait
	}
	hold, err := c.lock.TryLock(ctx, limit, rlock.Watchdog)
	if err != nil {
		return record, fmt.Errorf("%w (%w)", err, rlock.ErrNotRun)
	}
	recorded := false
	defer func() {
		released := hold.Unlock()
		if c.ran && !recorded && err != nil && released != nil && !errors.Is(err, released) {
			err = errors.Join(err, released)
		}
	}()
	c.run = rand.Text()
	record, err = c.repeat(ctx, hold, false,
		func(ctx context.Context, redis rueidis.CoreClient) (lua.OnceRecord, error) {
			return lua.BeginOnce(ctx, redis, c.lock.Name(), hold.Owner(), c.run, c.ttl)
		})
	switch {
	case err != nil:
		return record, c.notRun(err)
	case record.Lost:
		return record, c.notRun(c.lost(hold))
	case record.Stored:
		return record, nil
	}
	r.token, c.ran = record.Token, true
	data, err := fn(context.WithValue(hold.Context(), running{}, r))
	if errors.Is(err, rlock.ErrNotRun) {
		err = ranError{err}
	}
	if err != nil {
		return record, err
	}
	record.Stored, record.Print, record.Result = true, c.print, string(data)
	stored, err := c.repeat(ctx, hold, true,
		func(ctx context.Context, redis rueidis.CoreClient) (lua.OnceRecord, error) {
			return lua.StoreOnce(ctx, redis, c.lock.Name(), hold.Owner(), record, c.ttl)
		})
	switch {
	case err != nil:
		return record, c.wrap(fmt.Errorf("%w: %w", ErrNotRecorded, err))
	case stored.Lost:
		return record, c.wrap(fmt.Errorf("%w: %w", ErrNotRecorded, c.lost(hold)))
	}
	recorded = true
	return stored, nil
}

// repeat sends a command until its outcome is known, Redis rejects it for good, ctx ends, or the
// lock is lost. A final command is sent at least once, even then.
func (c *call) repeat(ctx context.Context, hold *rlock.Hold, final bool,
	command func(context.Context, rueidis.CoreClient) (lua.OnceRecord, error),
) (lua.OnceRecord, error) {
	ends := hold.Context() // also when ctx ends
	ctx = context.WithoutCancel(ctx)
	if !final {
		ctx = ends
	}
	var delay wait.Backoff
	for {
		record, err := hook.Once(ctx, c.lock, final, command)
		if err == nil || hook.Permanent(c.lock, err) {
			return record, err
		}
		pause := time.NewTimer(delay.Next())
		select {
		case <-pause.C:
		case <-ends.Done():
			pause.Stop()
			return record, err
		}
	}
}

// lost returns why the lock is lost.
func (c *call) lost(hold *rlock.Hold) error {
	if err := hold.Err(); errors.Is(err, rlock.ErrLost) {
		return err
	}
	return &rlock.LostError{Lock: c.lock.Name(), Reason: rlock.ErrGone}
}

// notRun returns an error for a call that has not called its function.
func (c *call) notRun(err error) error {
	return c.wrap(fmt.Errorf("%w (%w)", err, rlock.ErrNotRun))
}

func (c *call) wrap(err error) error { return keyError{c.key, err} }

// keyError adds the key to an error, which may name the lock.
type keyError struct {
	key string
	err error
}

func (e keyError) Error() string {
	err := strings.ReplaceAll(e.err.Error(), "holdfast: ", "")
	return fmt.Sprintf("holdfast: once key %q: %s", e.key, err)
}

func (e keyError) Unwrap() error { return e.err }

// ranError is the error of a function that was called. It hides an [rlock.ErrNotRun] from inside
// the function.
type ranError struct{ err error }

func (e ranError) Error() string      { return e.err.Error() }
func (e ranError) As(target any) bool { return errors.As(e.err, target) }
func (e ranError) Is(target error) bool {
	return target != rlock.ErrNotRun && errors.Is(e.err, target)
}
