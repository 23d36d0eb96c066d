package transport

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entry returns one range of a reply to CLUSTER SLOTS.
func entry(first, last int, host any, port int) list {
	return list{first, last, list{host, port, "id", list{}}, list{"replica", 1, "id", list{}}}
}

func TestNodeWithoutAddressIsTheOneThatWasAsked(t *testing.T) {
	for name, host := range map[string]any{"null": nil, "empty": "", "unknown": "?"} {
		t.Run(name, func(t *testing.T) {
			f, c := startFake(t, nil)
			f.set(list{entry(0, 99, host, f.port), entry(100, 199, host, f.port+1)})
			address, err := c.master(t.Context(), 7, false)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint("127.0.0.1:", f.port), address)
			// No node has that port.
			_, err = c.master(t.Context(), 107, false)
			require.ErrorIs(t, err, errUnassigned)
		})
	}
}

func TestMalformedEntryCostsOnlyItself(t *testing.T) {
	for name, malformed := range map[string]any{
		"no list":            "text",
		"null":               nil,
		"empty":              list{},
		"no master":          list{0, 99},
		"text for a slot":    list{"a", 99, list{"h", 1}},
		"null for a slot":    list{0, nil, list{"h", 1}},
		"master is text":     list{0, 99, "h:1"},
		"master is null":     list{0, 99, nil},
		"master is empty":    list{0, 99, list{}},
		"master has no port": list{0, 99, list{"h"}},
		"port is text":       list{0, 99, list{"h", "port"}},
		"slot below 0":       list{-1, 99, list{"h", 1}},
		"slot too high":      list{65536, 65636, list{"h", 1}}, // as 16 bits, these are 0 and 100
	} {
		t.Run(name, func(t *testing.T) {
			_, c := startFake(t, list{malformed, entry(100, 199, "h", 2)})
			address, err := c.master(t.Context(), 150, false)
			require.NoError(t, err)
			require.Equal(t, "h:2", address)
			_, err = c.master(t.Context(), 50, false)
			require.ErrorIs(t, err, errUnassigned)
		})
	}
}

func TestCallersThatNoticeTheSameChangeShareARequest(t *testing.T) {
	f, c := startFake(t, list{entry(0, 99, "h", 1)})
	resume := f.pause(t)
	var callers sync.WaitGroup
	var calling atomic.Int32
	for range 50 {
		callers.Go(func() {
			calling.Add(1)
			address, err := c.master(context.Background(), 7, true)
			if err != nil || address != "h:1" {
				t.Error(address, err)
			}
		})
	}
	require.Eventually(t, func() bool { return f.asked.Load() == 1 && calling.Load() == 50 },
		5*time.Second, time.Millisecond)
	start := time.Now()
	resume()
	callers.Wait()
	require.EqualValues(t, 1, f.asked.Load())

	// A known slot costs nothing. A wrong one does once the reply is old enough.
	for range 100 {
		_, err := c.master(t.Context(), 7, false)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, f.asked.Load())
	require.Eventually(t, func() bool {
		_, err := c.master(t.Context(), 7, true)
		return err == nil && f.asked.Load() == 2
	}, 5*time.Second, time.Millisecond)
	require.Greater(t, time.Since(start), 10*time.Millisecond, "asked at every call")
}

func TestRequestEndsWithItsContext(t *testing.T) {
	f, c := startFake(t, list{entry(0, 99, "h", 1)})
	resume := f.pause(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 2)
	go func() {
		_, err := c.master(ctx, 7, false)
		failed <- err
	}()
	require.Eventually(t, func() bool { return f.asked.Load() == 1 }, 5*time.Second,
		time.Millisecond)
	cancel()
	select {
	case err := <-failed:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(5 * time.Second):
		require.Fail(t, "the request goes on")
	}
	resume()
	address, err := c.master(t.Context(), 7, false)
	require.NoError(t, err)
	require.Equal(t, "h:1", address)
}
