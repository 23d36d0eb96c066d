package gocron

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"holdfast/leader"
	"holdfast/rlock"
)

// Elector lets one of several schedulers run all jobs, the leader:
// gocron.WithDistributedElector(elector). The leader leads until it is closed, or loses the lock.
// Another leads at once when it is closed, and one lease later if its process dies. An Elector is
// safe for concurrent use.
type Elector struct {
	candidate *leader.Candidate
	stop      context.CancelFunc
	settled   context.Context // ends with the first election, or a second after the start
	ended     chan struct{}   // closed when the candidate stands no more
	err       error           // why; set before ended is closed
	lost      error           // the first loss; set before ended is closed
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector, which stands for election in the background until Close. Those
// with locks of one name elect one leader.
func NewElector(lock rlock.Locker) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	settled, elected := context.WithTimeout(ctx, time.Second)
	e := &Elector{stop: stop, settled: settled, ended: make(chan struct{})}
	e.candidate = leader.New(lock, leader.Options{
		OnElected: func(*rlock.Hold) { elected() },
		OnLost: func(reason error) {
			if e.lost == nil {
				e.lost = reason
			}
		},
	})
	go func() {
		defer close(e.ended)
		e.err = e.candidate.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	return e
}

// IsLeader returns nil if this scheduler leads. The error matches rlock.ErrNotAcquired if it does
// not, and rlock.ErrClosed after Close. If an error ended the candidacy that no retry can fix,
// IsLeader returns that error. In the first second after NewElector, IsLeader waits for the
// election, so that jobs that are due at the start have a leader.
func (e *Elector) IsLeader(ctx context.Context) error {
	select {
	case <-e.settled.Done():
	case <-e.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.candidate.IsLeader() {
		return nil
	}
	select {
	case <-e.ended:
		if errors.Is(e.err, context.Canceled) {
			return rlock.ErrClosed
		}
		return e.err
	default:
		return fmt.Errorf("gocron: another scheduler leads, or none yet: %w", rlock.ErrNotAcquired)
	}
}

// Close gives up the leadership, and waits for that until ctx ends. Call it when the scheduler has
// been shut down. The error matches rlock.ErrLost if the leadership was ever lost, even if it was
// regained: jobs may have run beside those of another leader.
func (e *Elector) Close(ctx context.Context) error {
	e.stop()
	select {
	case <-e.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if errors.Is(e.err, context.Canceled) {
		return e.lost
	}
	return errors.Join(e.lost, e.err)
}
