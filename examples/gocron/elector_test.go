package gocron_test

import (
	"context"
	"testing"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	adapter "holdfast/examples/gocron"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// candidates returns electors of two processes.
func candidates(redis *rlocktest.Redis) (a, b *adapter.Elector) {
	return adapter.NewElector(redis.NewClient(rlock.Options{}).NewLock("leader")),
		adapter.NewElector(redis.NewClient(rlock.Options{}).NewLock("leader"))
}

func TestFirstThatAsksLeadsUntilItIsClosed(t *testing.T) {
	redis := rlocktest.New(t)
	a, b := candidates(redis)
	job, end := context.WithCancel(t.Context())
	require.NoError(t, a.IsLeader(job))
	end() // of the job, not of the leadership
	require.ErrorIs(t, b.IsLeader(t.Context()), rlock.ErrNotAcquired)
	require.NoError(t, a.IsLeader(t.Context()))

	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, b.IsLeader(t.Context()))
	require.ErrorIs(t, a.IsLeader(t.Context()), rlock.ErrClosed)
	require.NoError(t, a.Close(t.Context()), "closed twice")
	require.NoError(t, b.Close(t.Context()))
}

func TestLeaderWhoseLockIsLostIsACandidateAgain(t *testing.T) {
	redis := rlocktest.New(t)
	a, b := candidates(redis)
	require.NoError(t, a.IsLeader(t.Context()))
	redis.Lose("leader")
	require.NoError(t, b.IsLeader(t.Context()))
	require.ErrorIs(t, a.IsLeader(t.Context()), rlock.ErrNotAcquired)
	require.ErrorIs(t, a.Close(t.Context()), rlock.ErrLost)
	require.NoError(t, b.Close(t.Context()))
}

// asked is an elector that sends what it answers.
type asked struct {
	*adapter.Elector
	answers chan error
}

func (a asked) IsLeader(ctx context.Context) error {
	err := a.Elector.IsLeader(ctx)
	a.answers <- err
	return err
}

func TestSchedulerRunsItsJobsIfItLeads(t *testing.T) {
	redis := rlocktest.New(t)
	a, b := candidates(redis)
	require.NoError(t, a.IsLeader(t.Context()))
	ran := make(chan bool)
	follower := asked{b, make(chan error)}
	start(t, gocron.WithDistributedElector(follower), ran, func() { t.Error("b does not lead") })
	require.ErrorIs(t, <-follower.answers, rlock.ErrNotAcquired)
	start(t, gocron.WithDistributedElector(a), ran, func() {})
	require.True(t, <-ran)
	require.NoError(t, a.Close(t.Context()))
}
