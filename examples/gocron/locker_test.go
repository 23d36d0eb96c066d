package gocron_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	adapter "holdfast/examples/gocron"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a scheduler with one job that is due at once. It sends whether the job ran.
func start(t *testing.T, option gocron.SchedulerOption, outcomes chan<- bool, work func()) {
	t.Helper()
	scheduler, err := gocron.NewScheduler(option)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scheduler.Shutdown()) })
	_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(work), gocron.WithName("report"),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { outcomes <- true }),
			gocron.AfterLockError(func(uuid.UUID, string, error) { outcomes <- false })))
	require.NoError(t, err)
	scheduler.Start()
}

func TestJobThatIsDueInSeveralSchedulersRunsOnce(t *testing.T) {
	redis := rlocktest.New(t)
	outcomes := make(chan bool)
	for range 3 {
		locker := adapter.NewLocker(redis.NewClient(rlock.Options{}),
			adapter.LockerOptions{Splay: time.Hour})
		start(t, gocron.WithDistributedLocker(locker), outcomes, func() {})
	}
	ran := 0
	for range 3 {
		if <-outcomes {
			ran++
		}
	}
	require.Equal(t, 1, ran, "a quick job is over before the other schedulers ask")
}

func TestJobThatRunsElsewhereIsNotRun(t *testing.T) {
	redis := rlocktest.New(t)
	redis.Busy("jobs:report")
	locker := adapter.NewLocker(redis.Client(), adapter.LockerOptions{Prefix: "jobs:"})
	_, err := locker.Lock(t.Context(), "report")
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}

func TestLossOfAJobsLockIsLogged(t *testing.T) {
	redis := rlocktest.New(t)
	var log strings.Builder
	locker := adapter.NewLocker(redis.Client(), adapter.LockerOptions{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	lock, err := locker.Lock(t.Context(), "report")
	require.NoError(t, err)
	redis.Lose("gocron:report")
	require.ErrorIs(t, lock.Unlock(context.Background()), rlock.ErrLost)
	require.Contains(t, log.String(), "gocron:report")
}
