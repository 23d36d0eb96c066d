package gocron_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	adapter "holdfast/examples/gocron"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// candidates returns electors of two processes. a leads.
func candidates(t *testing.T, redis *rlocktest.Redis) (a, b *adapter.Elector) {
	t.Helper()
	a = adapter.NewElector(redis.NewClient(rlock.Options{}).NewLock("leader"))
	require.NoError(t, a.IsLeader(t.Context()), "it waits for the first election")
	return a, adapter.NewElector(redis.NewClient(rlock.Options{}).NewLock("leader"))
}

func TestLeaderLeadsUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := candidates(t, rlocktest.New(t))
		require.ErrorIs(t, b.IsLeader(t.Context()), rlock.ErrNotAcquired)
		time.Sleep(time.Minute)
		require.NoError(t, a.IsLeader(t.Context()))
		require.NoError(t, a.Close(t.Context()))
		synctest.Wait()
		require.NoError(t, b.IsLeader(t.Context()))
		require.ErrorIs(t, a.IsLeader(t.Context()), rlock.ErrClosed)
		require.NoError(t, a.Close(t.Context()), "closed twice")
		require.NoError(t, b.Close(t.Context()))
	})
}

func TestLeaderWhoseLockIsLostIsACandidateAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		a, b := candidates(t, redis)
		synctest.Wait()
		redis.Lose("leader")
		require.ErrorIs(t, a.IsLeader(t.Context()), rlock.ErrNotAcquired)
		time.Sleep(2 * time.Second)
		require.NoError(t, b.IsLeader(t.Context()))
		require.NoError(t, b.Close(t.Context()))
		synctest.Wait()
		require.NoError(t, a.IsLeader(t.Context()))
		require.ErrorIs(t, a.Close(t.Context()), rlock.ErrLost)
	})
}

func TestErrorThatNoRetryCanFixEndsTheCandidacy(t *testing.T) {
	elector := adapter.NewElector(rlocktest.New(t).Client().NewLock(""))
	require.ErrorIs(t, elector.IsLeader(t.Context()), rlock.ErrInvalid)
	require.ErrorIs(t, elector.Close(t.Context()), rlock.ErrInvalid)
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
	a, b := candidates(t, redis)
	ran := make(chan bool)
	follower := asked{b, make(chan error)}
	start(t, gocron.WithDistributedElector(follower), ran, func() { t.Error("b does not lead") })
	require.ErrorIs(t, <-follower.answers, rlock.ErrNotAcquired)
	start(t, gocron.WithDistributedElector(a), ran, func() {})
	require.True(t, <-ran)
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, a.Close(t.Context()))
}
