package server

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/worker"
)

func TestARelayDelaysAllThatIsOnTheWayAtTheSameTime(t *testing.T) {
	s, err := Start(t.Context(), worker.AnyCore)
	require.NoError(t, err)
	defer s.Stop()
	const delay, callers, calls = 20 * time.Millisecond, 50, 5
	require.NoError(t, s.Delay(delay))

	// One after another, the calls would take 50 times as long as those of one caller. If the machine
	// stands still, they are made again.
	const most = callers / 5 * calls * 2 * delay
	took := time.Hour
	for try := 0; try < 5 && took >= most; try++ {
		began := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				conn, err := Dial(s.Clients)
				for range calls {
					sent := time.Now()
					if err == nil {
						_, err = conn.Do("PING")
					}
					if took := time.Since(sent); took < delay || err != nil {
						t.Errorf("a reply took %v: %v", took, err)
						return
					}
				}
				conn.Close()
			})
		}
		all.Wait()
		took = time.Since(began)
	}
	require.Less(t, took, most)
}

func TestARelayEndsWithItsServer(t *testing.T) {
	s, err := Start(t.Context(), worker.AnyCore)
	require.NoError(t, err)
	defer s.Stop()
	require.NoError(t, s.Delay(time.Millisecond))
	conn, err := Dial(s.Clients)
	require.NoError(t, err)
	defer conn.Close()

	s.Stop()
	_, err = conn.Do("PING")
	require.Error(t, err)
	_, err = Dial(s.Clients)
	require.Error(t, err, "as that of a dead server, the port accepts no connections")
}
