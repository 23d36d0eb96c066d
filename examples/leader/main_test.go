package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// candidate is a process that stands for election.
type candidate struct {
	name  string
	leave context.CancelFunc
	err   chan error // of lead
}

// stand starts a candidate. It sends its name when it leads.
func stand(t *testing.T, client *rlock.Client, name string, leads chan<- string) candidate {
	ctx, leave := context.WithCancel(t.Context())
	c := candidate{name: name, leave: leave, err: make(chan error, 1)}
	go func() {
		c.err <- lead(ctx, client.NewLock("leader"), func(ctx context.Context) error {
			leads <- name
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	return c
}

func TestAnotherCandidateLeadsWhenTheLeaderLeaves(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	leads := make(chan string)
	a := stand(t, redis.NewClient(rlock.Options{}), "a", leads)
	require.Equal(t, "a", <-leads)
	b := stand(t, redis.NewClient(rlock.Options{}), "b", leads)
	redis.AwaitWaiter("leader")
	a.leave()
	require.Equal(t, "b", <-leads)
	require.ErrorIs(t, <-a.err, context.Canceled)
	b.leave()
	require.ErrorIs(t, <-b.err, context.Canceled)
}

func TestLeaderStandsAgainWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	leads := make(chan string)
	a := stand(t, redis.Client(), "a", leads)
	<-leads
	redis.Lose("leader")
	require.Equal(t, "a", <-leads)
	a.leave()
	require.ErrorIs(t, <-a.err, context.Canceled)
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
				a := stand(t, redis.Client(), "a", leads)
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
	for err, passes := range map[error]bool{
		rlock.ErrNotReplicated:                          true,
		rlock.ErrOutcomeUnknown:                         true,
		&rlock.ServerError{Class: rlock.ClassTemporary}: true,
		&rlock.ServerError{Class: rlock.ClassPermanent}: false,
		rlock.ErrClosed:                                 false,
		rlock.ErrInvalid:                                false,
		rlock.ErrDeadlock:                               false,
		errors.New("other"):                             false,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := rlocktest.New(t).Client().NewLock("leader")
				led := false
				got := lead(t.Context(), &refused{lock, err}, func(context.Context) error {
					led = true
					return nil
				})
				require.Equal(t, passes, led)
				if !passes {
					require.ErrorIs(t, got, err)
				}
			})
		})
	}
}

func TestErrorOfWorkIsReturnedWithTheLossThatItFollowed(t *testing.T) {
	t.Parallel()
	redis := rlocktest.New(t)
	unsaved := errors.New("not saved")
	err := lead(t.Context(), redis.Client().NewLock("leader"), func(ctx context.Context) error {
		redis.Lose("leader")
		<-ctx.Done()
		return unsaved
	})
	require.ErrorIs(t, err, unsaved)
	require.ErrorIs(t, err, rlock.ErrLost)
}
