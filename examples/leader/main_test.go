package main

import (
	"context"
	"errors"
	"testing"

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

func TestLeadReturnsWhatWorkReturns(t *testing.T) {
	t.Parallel()
	done := errors.New("done")
	lock := rlocktest.New(t).Client().NewLock("leader")
	require.NoError(t, lead(t.Context(), lock, func(context.Context) error { return nil }))
	err := lead(t.Context(), lock, func(context.Context) error { return done })
	require.Equal(t, done, err)
}
