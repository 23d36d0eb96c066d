package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/wait"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Options configures a [Candidate]. The zero value has all defaults. The callbacks run one after
// the other on the goroutine of [Candidate.Run], which waits for them.
type Options struct {
	// Grace is how long the work may continue under the lock after the context of Run has ended, for
	// example on SIGTERM. Run releases the lock as soon as the work returns. Defaults to 0, which ends
	// the work together with the context of Run.
	Grace time.Duration

	// OnElected, if set, is called when the candidate has become the leader, before the work begins.
	// hold has the fencing token of the leader. Do not release hold.
	OnElected func(hold *rlock.Hold)

	// OnLost, if set, is called after the leadership was lost and the work has returned, before the
	// candidate stands for election again. The reason matches [rlock.ErrLost]. If the work returned
	// an error of its own, the reason also matches that error. The client of the lock logs each loss,
	// even without OnLost.
	OnLost func(reason error)

	// OnFailed is called before the candidate tries again because it could not get the lock for a
	// temporary reason, for example too few replicas. While Redis is unreachable, the candidate waits
	// without calling OnFailed. Defaults to a warning on slog.Default().
	OnFailed func(err error)
}

// Run is New(lock, o).Run(ctx, work), for a program that does not need [Candidate.IsLeader].
func Run(ctx context.Context, lock rlock.Locker, o Options,
	work func(ctx context.Context) error,
) error {
	return New(lock, o).Run(ctx, work)
}

// A Candidate stands for election in one process. Candidates with locks of the same name elect one
// leader among them. All methods are safe for concurrent use.
type Candidate struct {
	lock    rlock.Locker
	options Options
	running atomic.Bool
	hold    atomic.Pointer[rlock.Hold] // of the leader; nil while the candidate does not lead
}

// New returns a candidate. The lock may be of any exclusive kind. With the read side of a
// read-write lock, several readers would lead at once, so Run returns [rlock.ErrInvalid]. Run does
// not notice a MultiLock of nothing but read locks. New sends nothing.
func New(lock rlock.Locker, o Options) *Candidate { return &Candidate{lock: lock, options: o} }

// IsLeader reports whether the candidate leads at this moment, without blocking. IsLeader returns
// false as soon as the lock can no longer be trusted, even if the work still runs. See
// [rlock.Hold.Context] for a lock that somebody deletes. The result may be outdated when you use
// it, so pass the context of the work to each step. If a late write would do harm, let the resource
// check the fencing token.
func (c *Candidate) IsLeader() bool {
	hold := c.hold.Load()
	return hold != nil && hold.Valid()
}

// Run stands for election, and calls work when the candidate leads. Run blocks until work has a
// result, until ctx ends, or until an error that no retry can fix. When Run returns, work has
// returned and the lock is released.
//
// The context of work derives from ctx, and carries the owner of the lock. The context ends
//   - at once, if the leadership is lost. work must then return soon, because another leader may
//     already be working. Run waits for work, calls OnLost, and stands for election again after a
//     pause of up to a second. While Redis is unreachable, the leadership lasts until the lease
//     ends,
//   - Options.Grace after ctx has ended. During the grace, check ctx itself to see that work should
//     finish, and the deadline of the context of work to see how much time is left.
//
// If work returns before its context has ended, its return value is the result. Run returns the
// result, even nil, and does not stand for election again. If work returns after its context has
// ended, Run ignores nil, and ignores an error matching the error or the cause of the context:
//   - If ctx has ended, Run returns the cause of ctx, joined with any other error of work.
//   - If the leadership is lost, OnLost receives any other error of work, and Run stands for
//     election again. Run does not return this error, because many libraries hide that their
//     context has ended.
//
// Run also returns the cause of ctx if ctx ends while Run waits for the lock. Other errors are
//   - [rlock.ErrClosed] if the client of the lock is closed,
//   - the errors of Lock that no retry can fix, such as a *[rlock.ServerError] for a wrong
//     password, and [rlock.ErrInvalid]. After other errors, Run tries again, so Run outlasts
//     outages,
//   - the error of the release, joined with the result of work. If this error matches
//     [rlock.ErrLost], the leadership was lost unnoticed before work returned,
//   - [rlock.ErrInvalid] if Run is already running for this candidate.
//
// If work panics, Run releases the lock, and the panic continues. Run ignores an owner in ctx,
// because a candidate excludes all others. If ctx is the context of a hold, the leadership ends
// with that hold and has no grace.
func (c *Candidate) Run(ctx context.Context, work func(ctx context.Context) error) error {
	if !c.running.CompareAndSwap(false, true) {
		return fmt.Errorf("holdfast: lock %q: %w", c.lock.Name(), compose.Invalid(
			"the candidate is already running; use another candidate for a concurrent call of Run"))
	}
	defer c.running.Store(false)
	if l, ours := c.lock.(*rlock.Lock); ours && rlock.Internals(compose.Access{}).IsShared(l) {
		return fmt.Errorf("holdfast: lock %q: %w", l.Name(), compose.Invalid(
			"several owners can hold a read lock, so several candidates would lead; use another kind of "+
				"lock"))
	}
	campaign := rlock.WithGrace(rlock.Detached(ctx), c.options.Grace)
	for {
		hold, err := c.lock.TryLock(campaign, rlock.Forever, rlock.Watchdog)
		switch {
		case err == nil:
			var again bool
			again, err = c.lead(ctx, hold, work)
			if !again {
				return err
			}
			c.lost(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passes(err):
			return err
		default:
			c.failed(err)
		}
		pause(ctx)
	}
}

// lead runs work under the lock and releases the lock. With again, err is why the leadership was
// lost. Otherwise err is the result of Run.
func (c *Candidate) lead(ctx context.Context, hold *rlock.Hold,
	work func(ctx context.Context) error,
) (again bool, err error) {
	var loss error
	defer func() { // even if work or OnElected panics or ends the goroutine
		c.hold.Store(nil) // before others may lead
		if release := hold.Unlock(); loss == nil {
			err = join(err, release)
		}
	}()
	c.hold.Store(hold)
	if c.options.OnElected != nil {
		c.options.OnElected(hold)
	}
	leading := hold.Context()
	err = work(leading)
	ended := leading.Err()
	if ended == nil {
		return false, err
	}
	if errors.Is(err, ended) || errors.Is(err, context.Cause(leading)) {
		err = nil // it only says that the context has ended
	}
	loss = hold.Err()
	if ctx.Err() != nil {
		return false, join(context.Cause(ctx), loss, err)
	}
	return !errors.Is(loss, rlock.ErrClosed), join(loss, err)
}

// join is errors.Join, but returns an error that is alone as it is.
func join(all ...error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

func (c *Candidate) lost(reason error) {
	if c.options.OnLost != nil {
		c.options.OnLost(reason)
	}
}

func (c *Candidate) failed(err error) {
	if c.options.OnFailed != nil {
		c.options.OnFailed(err)
		return
	}
	slog.Default().Warn("holdfast: a candidate could not get the lock, and tries again",
		"lock", c.lock.Name(), "error", err)
}

// passes reports whether the lock could not be acquired for a reason that should pass by itself, as
// missing replicas do, and a wrong password does not. Waiting outlasts most of these anyway.
func passes(err error) bool {
	var rejection *rlock.ServerError
	return !permanent(err) && (errors.As(err, &rejection) || errors.Is(err, rlock.ErrOutcomeUnknown) ||
		errors.Is(err, rlock.ErrNotReplicated) || errors.Is(err, redlock.ErrNoQuorum))
}

// permanent reports whether an error has a part that no retry can fix. A RedLock returns the errors
// of several nodes.
func permanent(err error) bool {
	if errors.Is(err, rlock.ErrClosed) || errors.Is(err, rlock.ErrInvalid) {
		return true
	}
	//nolint:errorlint // it looks at each part
	switch err := err.(type) {
	case *rlock.ServerError:
		return err.Class == rlock.ClassPermanent
	case interface{ Unwrap() error }:
		return permanent(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range err.Unwrap() {
			if permanent(part) {
				return true
			}
		}
	}
	return false
}

// pause waits for between half a second and a second, or until ctx ends. Candidates that have
// failed together try again at different times.
func pause(ctx context.Context) {
	select {
	case <-time.After(time.Second/2 + wait.Random(time.Second/2)):
	case <-ctx.Done():
	}
}
