package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
)

type list = []any // an array reply

// startSlots returns a server that replies to CLUSTER SLOTS, how often it was asked, and a client.
func startSlots(t *testing.T, reply *any) (*fakeredis.Server, *atomic.Int32, rueidis.Client) {
	t.Helper()
	s, asked := fakeredis.New(), new(atomic.Int32)
	s.Handle("CLUSTER", func([]string) any {
		asked.Add(1)
		return *reply
	})
	client, err := rueidis.NewClient(s.ClientOption())
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		s.Close()
	})
	return s, asked, client
}

// entry returns one range of a reply to CLUSTER SLOTS.
func entry(first, last int, host any, port int) list {
	return list{first, last, list{host, port, "id", list{}}, list{"replica", 1, "id", list{}}}
}

func TestEntryOfTheSlotMapIsReadOrCostsOnlyItself(t *testing.T) {
	var reply any
	_, _, client := startSlots(t, &reply)
	for name, of := range map[string]struct {
		entry any
		want  string
	}{
		"an address":                  {entry(0, 99, "h", 1), "h:1"},
		"null for who was asked":      {entry(0, 99, nil, 6379), "fake:6379"},
		"nothing for who was asked":   {entry(0, 99, "", 6379), "fake:6379"},
		"? for who was asked":         {entry(0, 99, "?", 6379), "fake:6379"},
		"no address of another":       {entry(0, 99, nil, 6380), ""},
		"no list":                     {"text", ""},
		"null":                        {nil, ""},
		"empty":                       {list{}, ""},
		"no master":                   {list{0, 99}, ""},
		"text for a slot":             {list{"a", 99, list{"h", 1}}, ""},
		"null for a slot":             {list{0, nil, list{"h", 1}}, ""},
		"master is text":              {list{0, 99, "h:1"}, ""},
		"master is null":              {list{0, 99, nil}, ""},
		"master is empty":             {list{0, 99, list{}}, ""},
		"master has no port":          {list{0, 99, list{"h"}}, ""},
		"port is text":                {list{0, 99, list{"h", "port"}}, ""},
		"slot below 0":                {list{-1, 99, list{"h", 1}}, ""},
		"0 and 100 if cut to 16 bits": {list{65536, 65636, list{"h", 1}}, ""},
	} {
		c := &cluster{client: client}
		reply = list{of.entry, entry(100, 199, "h", 2)}
		address, err := c.master(t.Context(), 150, false)
		require.NoError(t, err, name)
		require.Equal(t, "h:2", address, name)
		address, err = c.master(t.Context(), 50, false)
		require.Equal(t, of.want, address, name)
		if of.want == "" {
			require.ErrorIs(t, err, errUnassigned, name)
		}
	}
}

func TestCallersThatNoticeTheSameChangeShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reply any = list{entry(0, 99, "h", 1)}
		s, asked, client := startSlots(t, &reply)
		c := &cluster{client: client}
		s.Pause()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				address, err := c.master(context.Background(), 7, true)
				if err != nil || address != "h:1" {
					t.Error(address, err)
				}
			})
		}
		s.Resume()
		callers.Wait()                            // who comes after the reply comes at the same instant
		_, err := c.master(t.Context(), 7, false) // a known slot costs nothing
		require.NoError(t, err)
		require.EqualValues(t, 1, asked.Load())

		// A wrong one does once the reply is old enough.
		time.Sleep(minimumAge - 1)
		_, err = c.master(t.Context(), 7, true)
		require.NoError(t, err)
		require.EqualValues(t, 1, asked.Load())
		time.Sleep(time.Nanosecond)
		_, err = c.master(t.Context(), 7, true)
		require.NoError(t, err)
		require.EqualValues(t, 2, asked.Load())
	})
}

func TestRequestOfTheSlotMapEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reply any = list{entry(0, 99, "h", 1)}
		s, _, client := startSlots(t, &reply)
		c := &cluster{client: client}
		s.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.master(ctx, 7, false)
		require.ErrorIs(t, err, context.Canceled)
		s.Resume()
		address, err := c.master(t.Context(), 7, false)
		require.NoError(t, err)
		require.Equal(t, "h:1", address)
	})
}
