package rlock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Troubles that pass by themselves: a wait outlasts them, an attempt without wait tells of them.

// trouble is something that has the server refuse writes with a code, until end is called or it passes by itself.
type trouble struct {
	code  string
	begin func(t *testing.T, s *redistest.Server) (end func())
}

func TestWaitOutlastsATroubleThatPasses(t *testing.T) {
	troubles := map[string]trouble{
		"LOADING":    {"LOADING", load},
		"BUSY":       {"BUSY", beBusy},
		"NOREPLICAS": {"NOREPLICAS", wantReplicas},
	}
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.WithArgs("--enable-debug-command", "yes", "--lua-time-limit", "20",
				"--rdbcompression", "no", "--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"))
			c := newClient(t, s, rlock.Options{CommandTimeout: patience})
			hold := take(t, c.NewLock("mine"), time.Minute)
			end := trouble.begin(t, s)
			eventually(t, func() bool {
				_, err := s.Call("HSET", "probe", "field", "value")
				return err != nil && strings.HasPrefix(err.Error(), trouble.code)
			}, "the trouble did not begin")

			_, err := c.NewLock("other").TryLock(t.Context(), rlock.NoWait, time.Second)
			requireRefusal(t, err, trouble.code)

			// At the end of a wait a try may be on its way. What was known before is told all the same.
			_, err = c.NewLock("other").TryLock(t.Context(), 50*time.Millisecond, time.Second)
			require.ErrorContains(t, err, trouble.code)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)

			waiter := lockInBackground(t.Context(), c.NewLock("other"), time.Minute)
			released := make(chan error, 1)
			go func() { released <- hold.Unlock(t.Context()) }()
			require.Never(t, func() bool { return len(waiter) > 0 || len(released) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
			end()
			unlock(t, acquired(t, waiter))
			require.NoError(t, receive(t, released, "the release has not ended"))
			require.Zero(t, s.DoInt(t, "EXISTS", "mine", "other"))
		})
	}
}

func TestEndOfAWaitTellsOfTheTroubleBeforeTheLastTry(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("job")
	wantReplicas(t, s)
	waiter := inBackground(func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), 400*time.Millisecond, time.Minute) })
	eventually(t, func() bool { return calls(s, "pttl") >= 2 }, "it was not tried twice")
	s.Pause(t)

	err := result(t, waiter).err
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
	require.ErrorContains(t, err, "no answer")
	require.ErrorContains(t, err, "NOREPLICAS")
}

// calls is how often the server has executed a command, also in scripts. Unlike CommandStats it may be called in a condition.
func calls(s *redistest.Server, command string) int {
	reply, _ := s.Call("INFO", "commandstats")
	info, _ := reply.(string)
	_, after, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	count, _, _ := strings.Cut(after, ",")
	n, _ := strconv.Atoi(count) // 0 if it was never called
	return n
}

// load has the server load its data again, which takes about a second.
func load(t *testing.T, s *redistest.Server) (end func()) {
	for i := range 100 {
		s.Do(t, "SET", "filler:"+strconv.Itoa(i), strings.Repeat("x", 1000))
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Call("DEBUG", "RELOAD")
		done <- err
	}()
	t.Cleanup(func() { require.NoError(t, receive(t, done, "the server still loads")) })
	return func() {}
}

// beBusy keeps the server busy with a script.
func beBusy(t *testing.T, s *redistest.Server) (end func()) {
	done := make(chan error, 1)
	go func() {
		_, err := s.Call("EVAL", "while true do end", "0")
		done <- err
	}()
	return func() {
		s.Do(t, "SCRIPT", "KILL")
		require.ErrorContains(t, receive(t, done, "the script still runs"), "killed")
	}
}

// wantReplicas has the server refuse writes for want of replicas.
func wantReplicas(t *testing.T, s *redistest.Server) (end func()) {
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	return func() { s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0") }
}
