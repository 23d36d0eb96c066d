//go:build redis

package rlock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests are about locks that are handed over less often, or not at all.

// ownWords returns the words of commands that name what only this library knows.
func ownWords(commands [][]string) (words []string) {
	for _, command := range commands {
		for _, word := range command {
			if strings.Contains(word, "holdfast") &&
				!strings.Contains(word, "\n") { // not the source of a script
				words = append(words, word)
			}
		}
	}
	return words
}

// handOver has a lock of one client wait for that of another, and for one of its own, and requires
// that both acquire it. It returns the commands that clients and scripts sent meanwhile.
func handOver(
	t *testing.T, s *redistest.Server, k kind, here, elsewhere *rlock.Client,
) (told [][]string) {
	t.Helper()
	k.warm(t, here, k.name)
	k.warm(t, elsewhere, k.name)
	clients, scripts := s.Monitor(t), s.Monitor(t)
	hold := take(t, k.lock(here, k.name), longLease)
	var waiters []<-chan outcome
	for i, c := range []*rlock.Client{here, elsewhere} {
		waiters = append(waiters, lockInBackground(t.Context(), k.lock(c, k.name), longLease))
		k.waitForListeners(t, s, k.name, i+1)
		waitForQuiet(t, s)
	}
	start := time.Now()
	unlock(t, hold)
	for range waiters {
		var o outcome
		select { // after its value the channel is closed
		case o = <-waiters[0]:
			waiters[0] = nil
		case o = <-waiters[1]:
			waiters[1] = nil
		case <-time.After(longWait):
			require.Fail(t, "no waiter was woken")
		}
		require.NoError(t, o.Err)
		unlock(t, o.Hold)
	}
	require.Less(t, time.Since(start), promptly)
	waitUntilFree(t, s, k.name)
	return append(clients.Commands(t), scripts.CommandsOfScripts(t)...)
}

func TestWithoutHandOversOnlyWhatRedissonKnowsIsTouched(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		none := rlock.Options{HandOver: rlock.HandOverNone}
		told := handOver(t, s, k, newClient(t, s, none), newClient(t, s, none))
		require.Empty(t, ownWords(told))
		require.True(
			t,
			slices.ContainsFunc(told,
				func(command []string) bool { return command[0] == "publish" }),
		)

		// With hand-overs such words are found.
		s = redistest.Start(t)
		require.NotEmpty(
			t,
			ownWords(
				handOver(t, s, k, newClient(t, s, rlock.Options{}),
					newClient(t, s, rlock.Options{})),
			),
		)
	})
}

// A lock that is handed over would be held before the replicas have it.
func TestLockThatReplicasMustHaveIsNotHandedOver(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	options := rlock.Options{SyncReplicas: 1}
	for _, k := range givenAway() {
		here, elsewhere := newClient(t, master, options), newClient(t, master, options)
		told := handOver(t, master, k, here, elsewhere)
		require.Empty(t, ownWords(told))
		waits := 0
		for _, command := range told {
			if command[0] == "wait" {
				waits++
			}
		}
		require.GreaterOrEqual(t, waits, 3, "one for each acquisition")
	}
}
