package rlock_test

import (
	"slices"
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
	args  []string // of the server
}

func TestWaitOutlastsATroubleThatPasses(t *testing.T) {
	t.Parallel()
	troubles := map[string]trouble{
		// Before Redis 7 a server that loads looks at its connections every 2 MB only, and cannot be told otherwise.
		"LOADING": {"LOADING", load, []string{"--enable-debug-command", "yes", "--rdbcompression", "no",
			"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"}},
		"BUSY":       {"BUSY", beBusy, []string{"--lua-time-limit", "20"}},
		"NOREPLICAS": {"NOREPLICAS", wantReplicas, nil},
	}
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.WithArgs(trouble.args...))
			c := newClient(t, s, rlock.Options{CommandTimeout: patience})
			holds := make(map[string]*rlock.Hold)
			for _, k := range kinds {
				holds[k.name] = take(t, k.lock(c, k.name), time.Minute)
			}
			end := trouble.begin(t, s)
			eventually(t, func() bool {
				_, err := s.Call("HSET", "probe", "field", "value")
				return err != nil && strings.HasPrefix(err.Error(), trouble.code)
			}, "the trouble did not begin")

			var impatient, waiters []<-chan outcome
			released := make(map[string]chan error)
			for _, k := range kinds {
				lock := k.lock(c, "other "+k.name)
				_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Second)
				requireRefusal(t, err, trouble.code)
				impatient = append(impatient, inBackground(func() (*rlock.Hold, error) {
					return lock.TryLock(t.Context(), 300*time.Millisecond, time.Second)
				}))
			}
			// At the end of a wait a try may be on its way. What was known before is told all the same.
			for _, waiter := range impatient {
				err := result(t, waiter).Err
				require.ErrorContains(t, err, trouble.code)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			}

			for _, k := range kinds {
				waiters = append(waiters, lockInBackground(t.Context(), k.lock(c, "other "+k.name), time.Minute))
				done := make(chan error, 1)
				released[k.name] = done
				go func() { done <- holds[k.name].Unlock(t.Context()) }()
			}
			require.Never(t, func() bool {
				for _, k := range kinds {
					if len(released[k.name]) > 0 {
						return true
					}
				}
				return slices.ContainsFunc(waiters, func(waiter <-chan outcome) bool { return len(waiter) > 0 })
			}, 100*time.Millisecond, 10*time.Millisecond)
			end()
			for i, k := range kinds {
				unlock(t, acquired(t, waiters[i]))
				require.NoError(t, receive(t, released[k.name], "the release has not ended"))
				requireFree(t, s, k.name)
				requireFree(t, s, "other "+k.name)
			}
		})
	}
}

func TestEndOfAWaitTellsOfTheTroubleBeforeTheLastTry(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	for _, k := range kinds {
		k.warm(t, c, k.name)
	}
	wantReplicas(t, s)
	monitor := s.Monitor(t)
	var waiters []<-chan outcome
	for _, k := range kinds {
		waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
			return k.lock(c, k.name).TryLock(t.Context(), 2*time.Second, time.Minute)
		}))
	}
	tries := make(map[string]int) // the second is sent after the answer to the first
	eventually(t, func() bool {
		for _, command := range monitor.Commands(t) {
			for _, k := range kinds {
				if slices.Contains(command, k.name) {
					tries[k.name]++
				}
			}
		}
		for _, k := range kinds {
			if tries[k.name] < 2 {
				return false
			}
		}
		return true
	}, "it was not tried twice")
	s.Pause(t)

	for _, waiter := range waiters {
		err := result(t, waiter).Err
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "no answer")
		require.ErrorContains(t, err, "NOREPLICAS")
	}
}

// load has the server load its data again, which takes some seconds.
func load(t *testing.T, s *redistest.Server) (end func()) {
	for i := range 250 {
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
