//go:build !race

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/leader"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// The race detector crashes now and then in bubbles of testing/synctest, and these are many. See
// https://github.com/golang/go/issues/78156.

var (
	errWork = errors.New("the work failed")
	errStop = errors.New("the process stops")
)

// process is a process that stands for election, and leads until its context ends.
type process struct {
	name  string
	leave context.CancelFunc
	err   chan error // of Run
}

// stand starts a process. It sends its name when it leads.
func stand(t *testing.T, lock rlock.Locker, name string, leads chan<- string) process {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	p := process{name: name, leave: leave, err: make(chan error, 1)}
	go func() {
		p.err <- leader.Run(ctx, lock, leader.Options{}, func(ctx context.Context) error {
			leads <- name
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	return p
}

func TestAnotherCandidateLeadsAtOnceWhenTheLeaderLeaves(t *testing.T) {
	for kind, lock := range map[string]func(t *testing.T) func() rlock.Locker{
		"plain": on(func(c *rlock.Client) rlock.Locker { return c.NewLock("leader") }),
		"fair":  on(func(c *rlock.Client) rlock.Locker { return c.NewFairLock("leader") }),
		"write": on(func(c *rlock.Client) rlock.Locker {
			return c.NewReadWriteLock("leader").Write()
		}),
		"fenced":       on(func(c *rlock.Client) rlock.Locker { return c.NewFencedLock("leader") }),
		"nonreentrant": on(func(c *rlock.Client) rlock.Locker { return c.NewNonReentrantLock("leader") }),
		"multilock":    on(func(c *rlock.Client) rlock.Locker { return multilock.NewOn(c, "x", "y") }),
		"redlock": func(t *testing.T) func() rlock.Locker {
			nodes := []*rlocktest.Redis{rlocktest.New(t), rlocktest.New(t), rlocktest.New(t)}
			return func() rlock.Locker {
				var clients []*rlock.Client
				for _, node := range nodes {
					clients = append(clients, node.NewClient(rlock.Options{}))
				}
				return redlock.NewOn("leader", redlock.Options{FsyncAlways: true}, clients...)
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := lock(t)
				leads := make(chan string)
				a := stand(t, lock(), "a", leads)
				require.Equal(t, "a", <-leads)
				b := stand(t, lock(), "b", leads)
				time.Sleep(time.Minute) // two leases
				a.leave()
				left := time.Now()
				require.Equal(t, "b", <-leads)
				require.Less(t, time.Since(left), time.Second)
				require.Equal(t, context.Canceled, <-a.err)
				b.leave()
				require.Equal(t, context.Canceled, <-b.err)
			})
		})
	}
}

// on returns locks of processes that share a Redis.
func on(lock func(*rlock.Client) rlock.Locker) func(t *testing.T) func() rlock.Locker {
	return func(t *testing.T) func() rlock.Locker {
		redis := rlocktest.New(t)
		return func() rlock.Locker { return lock(redis.NewClient(rlock.Options{})) }
	}
}

func TestWaitingCandidateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		redis.Busy("leader")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(errWork) })
		err := leader.Run(ctx, redis.Client().NewLock("leader"), leader.Options{Grace: time.Hour},
			func(context.Context) error { panic("it leads") })
		require.Equal(t, errWork, err)
	})
}

// After a loss, the candidate waits for its work, reports the loss, and stands again.
func TestLeaderStandsAgainAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		var steps []string
		var lost time.Time
		o := leader.Options{
			Grace:     time.Minute,
			OnElected: func(hold *rlock.Hold) { steps = append(steps, "elected "+hold.Name()) },
			OnLost: func(reason error) {
				require.ErrorIs(t, reason, rlock.ErrLost)
				require.ErrorIs(t, reason, errWork)
				steps = append(steps, "lost")
				lost = time.Now()
			},
		}
		terms := 0
		err := leader.Run(t.Context(), redis.Client().NewLock("leader"), o,
			func(ctx context.Context) error {
				terms++
				steps = append(steps, "works")
				if terms == 2 {
					require.LessOrEqual(t, time.Since(lost), time.Second)
					require.GreaterOrEqual(t, time.Since(lost), time.Second/2)
					return nil
				}
				redis.Lose("leader")
				require.ErrorIs(t, context.Cause(ctx), rlock.ErrLost, "no grace after a loss")
				time.Sleep(time.Minute) // slow to return
				steps = append(steps, "returns")
				return errWork
			})
		require.NoError(t, err)
		require.Equal(t, []string{"elected leader", "works", "returns", "lost", "elected leader",
			"works"}, steps)
	})
}

func TestCandidateOutlastsAnOutage(t *testing.T) {
	for name, begin := range map[string]func(redis *rlocktest.Redis){
		"down":  func(redis *rlocktest.Redis) { redis.Down() },
		"hangs": func(redis *rlocktest.Redis) { redis.Slow(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				redis := rlocktest.New(t)
				leads := make(chan string)
				begin(redis)
				a := stand(t, redis.Client().NewLock("leader"), "a", leads)
				for range 2 { // from the start, and as the leader
					time.Sleep(time.Minute) // longer than the lease
					redis.Slow(0)
					redis.Up()
					require.Equal(t, "a", <-leads)
					begin(redis)
				}
				time.Sleep(time.Minute)
				a.leave()
				require.ErrorIs(t, <-a.err, context.Canceled)
			})
		})
	}
}

func TestIsLeaderOnlyWhileTheLockCanBeTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		var candidate *leader.Candidate
		var until time.Time
		candidate = leader.New(redis.Client().NewLock("leader"), leader.Options{
			OnElected: func(hold *rlock.Hold) {
				require.True(t, candidate.IsLeader())
				until = hold.Deadline()
			},
			OnLost: func(error) { require.False(t, candidate.IsLeader()) },
		})
		require.False(t, candidate.IsLeader())
		terms := 0
		err := candidate.Run(t.Context(), func(ctx context.Context) error {
			if terms++; terms == 2 {
				return nil
			}
			redis.Down()
			time.Sleep(time.Until(until) - 1)
			require.True(t, candidate.IsLeader())
			time.Sleep(time.Nanosecond)
			require.False(t, candidate.IsLeader(), "the work still runs")
			redis.Up()
			return nil
		})
		require.NoError(t, err)
		require.False(t, candidate.IsLeader())
	})
}

func TestWorkGoesOnUnderTheLockForTheGrace(t *testing.T) {
	const grace = 10 * time.Second
	for name, takes := range map[string]time.Duration{
		"finished": 3 * time.Second, "too slow": grace, "deaf": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				redis := rlocktest.New(t)
				stop, sigterm := context.WithCancel(t.Context())
				leads := make(chan string)
				started, ran := make(chan bool), make(chan error)
				go func() {
					ran <- leader.Run(stop, redis.Client().NewLock("leader"), leader.Options{Grace: grace},
						func(ctx context.Context) error {
							started <- true
							<-stop.Done()
							if name == "deaf" {
								time.Sleep(takes)
								return nil
							}
							select {
							case <-time.After(takes + 1):
								return nil
							case <-ctx.Done():
								return context.Cause(ctx)
							}
						})
				}()
				<-started
				b := stand(t, redis.NewClient(rlock.Options{}).NewLock("leader"), "b", leads)
				synctest.Wait()
				sigterm()
				begun := time.Now()
				if name == "finished" {
					require.NoError(t, <-ran)
				} else {
					require.Equal(t, context.Canceled, <-ran)
				}
				require.Equal(t, "b", <-leads)
				require.InDelta(t, takes, time.Since(begun), float64(time.Second),
					"the lock is released as soon as the work returns")
				require.GreaterOrEqual(t, time.Since(begun), takes)
				b.leave()
				require.Equal(t, context.Canceled, <-b.err)
			})
		})
	}
}

func TestResultOfWork(t *testing.T) {
	for name, want := range map[string]struct {
		work func(ctx context.Context, sigterm func(), redis *rlocktest.Redis) error
		err  []error // none for nil
		is   error   // the error itself, if not nil
	}{
		"nil while leading": {work: func(context.Context, func(), *rlocktest.Redis) error {
			return nil
		}},
		"error while leading": {func(context.Context, func(), *rlocktest.Redis) error {
			return errWork
		}, []error{errWork}, errWork},
		"nil in the grace": {work: func(_ context.Context, sigterm func(), _ *rlocktest.Redis) error {
			sigterm()
			return nil
		}},
		"error in the grace": {func(_ context.Context, sigterm func(), _ *rlocktest.Redis) error {
			sigterm()
			return errWork
		}, []error{errWork}, errWork},
		"nil after the grace": {func(ctx context.Context, sigterm func(), _ *rlocktest.Redis) error {
			sigterm()
			<-ctx.Done()
			return nil
		}, []error{errStop}, errStop},
		"end of the context after the grace": {func(ctx context.Context, sigterm func(),
			_ *rlocktest.Redis,
		) error {
			sigterm()
			<-ctx.Done()
			return ctx.Err()
		}, []error{errStop}, errStop},
		"cause of the context after the grace": {func(ctx context.Context, sigterm func(),
			_ *rlocktest.Redis,
		) error {
			sigterm()
			<-ctx.Done()
			return fmt.Errorf("work: %w", context.Cause(ctx))
		}, []error{errStop}, errStop},
		"error after the grace": {func(ctx context.Context, sigterm func(), _ *rlocktest.Redis) error {
			sigterm()
			<-ctx.Done()
			return errWork
		}, []error{errStop, errWork}, nil},
		"loss in the grace": {func(ctx context.Context, sigterm func(), redis *rlocktest.Redis) error {
			sigterm()
			redis.Lose("leader")
			<-ctx.Done()
			return errWork
		}, []error{errStop, rlock.ErrLost, errWork}, nil},
		"loss that nobody noticed": {func(_ context.Context, _ func(), redis *rlocktest.Redis) error {
			server := must(rueidis.NewClient(redis.ClientOption()))
			defer server.Close()
			return server.Do(context.Background(), server.B().Del().Key("leader").Build()).Error()
		}, []error{rlock.ErrLost}, nil},
		"client closed": {func(ctx context.Context, _ func(), redis *rlocktest.Redis) error {
			_ = redis.Client().Close(context.Background())
			<-ctx.Done()
			return ctx.Err()
		}, []error{rlock.ErrClosed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				redis := rlocktest.New(t)
				ctx, stop := context.WithCancelCause(t.Context())
				sigterm := func() { stop(errStop) }
				defer sigterm()
				terms := 0
				o := leader.Options{Grace: time.Second, OnLost: func(error) { panic("it stands again") }}
				err := leader.Run(ctx, redis.Client().NewLock("leader"), o,
					func(ctx context.Context) error {
						terms++
						return want.work(ctx, sigterm, redis)
					})
				require.Equal(t, 1, terms)
				if len(want.err) == 0 {
					require.NoError(t, err)
				}
				for _, e := range want.err {
					require.ErrorIs(t, err, e)
				}
				if want.is != nil {
					require.Equal(t, want.is, err, "it is not wrapped")
				}
			})
		})
	}
}

// Several candidates come and go, their work is slow to return, and never do two work.
func TestTwoCandidatesNeverWorkAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		redis := rlocktest.New(t)
		var working, terms atomic.Int32
		ran := make(chan bool)
		for range 5 {
			lock := redis.NewClient(rlock.Options{}).NewLock("leader")
			stays := make([]time.Duration, 10)
			for i := range stays {
				stays[i] = time.Duration(random.IntN(20000)) * time.Millisecond
			}
			go func() {
				for i, leaves := range stays {
					ctx, cancel := context.WithTimeout(t.Context(), leaves)
					_ = leader.Run(ctx, lock, leader.Options{Grace: time.Duration(i) * time.Second},
						func(ctx context.Context) error {
							terms.Add(1)
							if working.Add(1) > 1 {
								t.Error("two work at once")
							}
							<-ctx.Done()
							time.Sleep(time.Duration(i) * time.Second)
							working.Add(-1)
							return nil
						})
					cancel()
				}
				ran <- true
			}()
		}
		for range 5 {
			<-ran
		}
		require.Greater(t, terms.Load(), int32(10))
	})
}

// Candidates whose contexts have one owner exclude each other all the same.
func TestOwnerOfTheCallerHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := rlocktest.New(t).Client().NewLock("leader")
		owner := rlock.WithOwner(t.Context())
		err := leader.Run(owner, lock, leader.Options{}, func(context.Context) error {
			_, err := lock.TryLock(owner, rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			ctx, cancel := context.WithTimeout(owner, time.Minute)
			defer cancel()
			err = leader.Run(ctx, lock, leader.Options{}, func(context.Context) error {
				panic("two lead at once")
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return nil
		})
		require.NoError(t, err)
	})
}

// refused is a lock whose first acquisition fails.
type refused struct {
	rlock.Locker
	err error
}

func (r *refused) TryLock(
	ctx context.Context,
	wait time.Duration,
	lease rlock.Lease,
) (*rlock.Hold, error) {
	if err := r.err; err != nil {
		r.err = nil
		return nil, err
	}
	return r.Locker.TryLock(ctx, wait, lease)
}

func TestCandidateStandsAgainAfterAnErrorThatPasses(t *testing.T) {
	temporary := &rlock.ServerError{Class: rlock.ClassTemporary}
	permanent := &rlock.ServerError{Class: rlock.ClassPermanent}
	for name, c := range map[string]struct {
		err    error
		passes bool
	}{
		"not replicated":  {rlock.ErrNotReplicated, true},
		"outcome unknown": {rlock.ErrOutcomeUnknown, true},
		"temporary":       {temporary, true},
		"permanent":       {fmt.Errorf("lock: %w", permanent), false},
		"no quorum":       {redlock.ErrNoQuorum, true},
		"no quorum, some nodes reject for good": {
			errors.Join(temporary, permanent, redlock.ErrNoQuorum), false,
		},
		"closed":   {rlock.ErrClosed, false},
		"invalid":  {rlock.ErrInvalid, false},
		"deadlock": {rlock.ErrDeadlock, false},
		"other":    {errors.New("other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := rlocktest.New(t).Client().NewLock("leader")
				led := false
				var failed error
				err := leader.Run(t.Context(), &refused{lock, c.err},
					leader.Options{OnFailed: func(err error) { failed = err }},
					func(context.Context) error {
						led = true
						return nil
					})
				require.Equal(t, c.passes, led)
				if c.passes {
					require.NoError(t, err)
					require.Equal(t, c.err, failed)
				} else {
					require.Equal(t, c.err, err)
					require.NoError(t, failed)
				}
			})
		})
	}
}
