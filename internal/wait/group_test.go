package wait_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

func TestTasksMayStartOthersUntilTheLastHasEnded(t *testing.T) {
	group := wait.NewGroup()
	release, started := make(chan struct{}), make(chan bool)
	require.True(t, group.Go(func() {
		<-release
		started <- group.Go(func() {})
	}))
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		group.Wait()
	}()
	require.Empty(t, waited)
	close(release)
	require.True(t, <-started, "a task may start what it needs to end properly")
	<-waited
	require.False(t, group.Go(func() { t.Error("started after the end") }))
	require.False(t, group.Enter())
	require.False(t, group.Join())
}

func TestGroupTakesNoNewCallersOnceItsEndIsAwaited(t *testing.T) {
	group := wait.NewGroup()
	require.True(t, group.Enter())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		group.Wait()
	}()
	require.Eventually(t, func() bool {
		if !group.Enter() {
			return true
		}
		group.Leave()
		return false
	}, 10*time.Second, time.Millisecond)
	require.True(t, group.Go(func() {}), "a task may start others")
	group.Leave()
	<-waited
}
