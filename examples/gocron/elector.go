package gocron

import (
	"context"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"holdfast/rlock"
)

// Elector lets one of several schedulers run all jobs, the leader:
// gocron.WithDistributedElector(elector). The first that asks leads until it is closed, or loses
// the lock. If its process dies, another leads one lease later, when its next job is due. It starts
// no goroutine, and is safe for concurrent use.
type Elector struct {
	lock rlock.Locker

	mu     sync.Mutex
	hold   *rlock.Hold // what makes it the leader; nil if it is not; guarded by mu
	lost   error       // how it lost the leadership first, for Close; guarded by mu
	closed bool        // guarded by mu
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector. Those with locks of one name elect one leader.
func NewElector(lock rlock.Locker) *Elector { return &Elector{lock: lock} }

// IsLeader returns nil if this scheduler leads. Otherwise it tries to become the leader, without
// waiting; the error matches rlock.ErrNotAcquired if another one leads, and rlock.ErrClosed after
// Close.
func (e *Elector) IsLeader(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return rlock.ErrClosed
	case e.hold != nil && e.hold.Valid():
		return nil
	}
	e.resign()
	// The leadership outlasts the job that asks.
	hold, err := e.lock.TryLock(context.WithoutCancel(ctx), rlock.NoWait, rlock.Watchdog)
	if err != nil {
		return err
	}
	e.hold = hold
	return nil
}

// resign gives up the leadership, if there is one. gocron does not look at the error of IsLeader,
// so a loss is kept for Close. It is called with mu held.
func (e *Elector) resign() {
	if e.hold == nil {
		return
	}
	err := e.hold.Unlock()
	e.hold = nil
	if e.lost == nil {
		e.lost = err
	}
}

// Close gives up the leadership. Call it when the scheduler has been shut down. The error matches
// rlock.ErrLost if the leadership was ever lost, even if it was regained: jobs may have run beside
// those of another leader.
func (e *Elector) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.resign()
	err := e.lost
	e.lost = nil
	return err
}
