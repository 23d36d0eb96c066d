package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// outputFile returns a file for the output of a demo, and a function that returns what it has
// written.
func outputFile(t *testing.T) (*os.File, func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file, func() string {
		text, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return string(text)
	}
}

// Nor does it leave a goroutine: see TestMain.
func TestCancelledDemoLeavesNothing(t *testing.T) {
	redis := redistest.Start(t)
	file, output := outputFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{Redis: redis.Addr(), Output: file}) }()
	require.Eventually(t, func() bool { // by then there are all sorts of keys
		return strings.Contains(output(), "queues up") && strings.Contains(output(), "steps back")
	}, 20*time.Second, 10*time.Millisecond)
	require.NotEmpty(t, redis.Keys(t))
	cancel()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(5 * time.Second):
		require.Fail(t, "still running")
	}
	require.Empty(t, redis.Keys(t))
	require.NotContains(t, output(), "\ndemo: ", "there is nothing to judge")
	require.Eventually(t, func() bool {
		return len(redis.DoStrings(t, "PUBSUB", "CHANNELS")) == 0
	}, 5*time.Second, 10*time.Millisecond)
}

func TestServerThatStopsIsAFault(t *testing.T) {
	redis := redistest.Start(t)
	file, output := outputFile(t)
	ended := make(chan verdict, 1)
	go func() {
		v, _ := play(t.Context(), Options{Redis: redis.Addr(), Output: file})
		ended <- v
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(output(), "waits, for up to")
	}, 20*time.Second, 10*time.Millisecond)
	redis.Kill(t)
	select {
	case v := <-ended:
		require.NotZero(t, v.sections)
		require.False(t, v.ok())
	case <-time.After(limit - 10*time.Second):
		require.Fail(t, "still running")
	}
	require.Regexp(t, `fault: \w+: \w+: `, output())
	require.Contains(t, output(), "fault: "+errStopped.Error())
	require.Contains(t, output(), "\nread the counters: ")
	require.Contains(t, output(), "\ndemo: ")
}

func TestWorkerThatCannotConnectStopsTheDemo(t *testing.T) {
	file, _ := outputFile(t)
	s := stage{scenes: scenes("", server{Address: "127.0.0.1:1"}, false),
		screen: newScreen(Options{Output: file})}
	_, err := s.play(t.Context())
	require.ErrorContains(t, err, "Redis at 127.0.0.1:1")
}
