package gocron

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"

	"holdfast/rlock"
)

// LockerOptions configures a Locker. The zero value is ready for use.
type LockerOptions struct {
	// Prefix begins the names of the locks; the name of the job follows. Defaults to "gocron:".
	Prefix string

	// Splay is for how long after the start of a job no other instance starts it, even if it has
	// ended. The clocks of two instances may differ for so long. It must be shorter than the time
	// between two runs of a job. Defaults to 1 s.
	Splay time.Duration

	// Logger receives errors of releases, which gocron does not look at: a job may have overlapped
	// with another. Defaults to slog.Default().
	Logger *slog.Logger
}

// Locker lets one of several schedulers run a job: gocron.WithDistributedLocker(locker). The job's
// lock is renewed while the job runs. It is safe for concurrent use.
//
// A job cannot hear through gocron that its lock was lost. One that must then stop uses rlock.Do
// instead, with rlock.NoWait, and its context.
type Locker struct {
	client  *rlock.Client
	options LockerOptions
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker.
func NewLocker(client *rlock.Client, options LockerOptions) *Locker {
	options.Prefix = cmp.Or(options.Prefix, "gocron:")
	options.Splay = cmp.Or(options.Splay, time.Second)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	return &Locker{client: client, options: options}
}

// Lock acquires the lock of a job without waiting. The error matches rlock.ErrNotAcquired if the
// job runs elsewhere, or was started within Splay. The job is not run then.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock := rlock.AtLeast(l.client.NewLock(l.options.Prefix+job), l.options.Splay)
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	return &runningJob{hold: hold, logger: l.options.Logger}, nil
}

// runningJob is the lock of a job that runs.
type runningJob struct {
	hold   *rlock.Hold
	logger *slog.Logger
}

// Unlock releases the lock.
func (r *runningJob) Unlock(ctx context.Context) error {
	err := r.hold.Unlock()
	if err != nil {
		r.logger.ErrorContext(ctx, "gocron: lock of a job", "lock", r.hold.Name(), "error", err)
	}
	return err
}
