//go:build redis

package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestTracerHearsOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{Tracer: tr})
	warm(t, clients)
	lock := redlock.NewOn("order", atOnce, clients...)
	servers[2].Pause(t)
	hung := clients[2].NewLock("order").Server()
	of := func(server string) (found []rlock.NodeFailed) {
		for _, d := range locktest.Heard[rlock.NodeFailed](tr) {
			if d.Server == server {
				found = append(found, d)
			}
		}
		return found
	}
	// Once it has not replied for its time-out, it is not asked any more.
	eventually(t, func() bool {
		unlock(t, take(t, lock, longLease))
		return len(of(hung)) > 0
	}, "nobody was told that the node hangs")
	failed := of(hung)[0]
	require.Equal(t, "acquire", failed.Operation)
	require.ErrorContains(t, failed.Err, "has not replied")
	require.ErrorIs(t, failed.Err, redlock.ErrNoReply)
	require.Equal(t, "order", failed.Lock.Name)
	rounds := locktest.Heard[rlock.RoundEnd](tr)
	refused := rounds[len(rounds)-1].Refused
	require.Len(t, refused, 1)
	require.Equal(t, hung, refused[0].Server)
	servers[2].Resume(t)
	for _, c := range clients[:2] {
		require.Empty(t, of(c.NewLock("order").Server()))
	}
}

func TestTracerHearsThatARedLockIsLost(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{WatchdogLease: 2 * time.Second, Tracer: tr})
	hold := take(t, redlock.NewOn("order", atOnce, clients...), rlock.Watchdog)
	require.NoError(t, locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0].Err, "of a node")
	eventually(t, func() bool { // also if the node grants it only now
		servers[0].Do(t, "DEL", "order")
		return len(locktest.Heard[rlock.NodeFailed](tr)) > 0
	}, "the tracer was not told")
	failed := locktest.Heard[rlock.NodeFailed](tr)[0]
	require.Equal(t, "hold", failed.Operation)
	require.ErrorIs(t, failed.Err, rlock.ErrGone)
	require.Empty(t, locktest.Heard[rlock.HoldEnd](tr), "a quorum holds it")
	eventually(t, func() bool { // the nodes that lost it rejoin
		servers[0].Do(t, "DEL", "order")
		servers[1].Do(t, "DEL", "order")
		return errors.Is(hold.Err(), rlock.ErrLost)
	}, "not lost")
	end := locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)
	require.Len(t, end, 1)
	require.ErrorIs(t, end[0].Err, rlock.ErrLost)
	require.Equal(t, "redlock", end[0].Lock.Kind)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}

// The tracer of a RedLock is that of its first client, which may be closed while the others go on.
func TestTracerThatBlocksDelaysNoOtherClient(t *testing.T) {
	t.Parallel()
	blocked, goOn := make(chan struct{}, 10), make(chan struct{})
	defer close(goOn)
	tr := &locktest.Tracer{Block: func(event any) {
		if _, ends := event.(rlock.HoldEnd); ends {
			blocked <- struct{}{}
			<-goOn
		}
	}}
	const lease = 3 * time.Second
	servers, trOfOthers := startNodes(t, 3), new(locktest.Tracer)
	first := newClients(t, servers[:1], rlock.Options{Tracer: tr, WatchdogLease: lease})
	others := newClients(t, servers, rlock.Options{Tracer: trOfOthers, WatchdogLease: lease})[1:]
	hold := take(t, redlock.NewOn("order", atOnce, append(first, others...)...), rlock.Watchdog)
	eventually(t, func() bool {
		renewed := make(map[string]bool)
		for _, d := range locktest.Heard[rlock.RenewalEnd](trOfOthers) {
			renewed[d.Lock.Server] = true
		}
		return len(renewed) == len(others)
	}, "not held by the others")
	closeClient(t, first[0])
	require.NoError(t, hold.Err(), "a quorum is left")
	servers[1].Pause(t)
	servers[2].Pause(t)
	receive(t, hold.Done(), "not lost")
	receive(t, blocked, "not told")
	servers[1].Resume(t)
	servers[2].Resume(t)
	for _, c := range others {
		other := take(t, c.NewLock("other"), time.Second)
		receive(t, other.Done(), "its watchdog is blocked")
	}
}
