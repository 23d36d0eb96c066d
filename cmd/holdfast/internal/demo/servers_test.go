package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func startedEmbedded(t *testing.T) (server, rueidis.Client) {
	t.Helper()
	e, where, err := startEmbedded()
	require.NoError(t, err)
	t.Cleanup(e.Close)
	client, err := where.connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return where, client
}

// A script sees leases end in real time: not before, and not much later.
func TestEmbeddedLeasesEndInRealTime(t *testing.T) {
	_, client := startedEmbedded(t)
	const lease = 1000 * ms
	script := func(text string) rueidis.RedisResult {
		return client.Do(t.Context(), client.B().Eval().Script(text).Numkeys(1).Key("k").Build())
	}
	sent := time.Now()
	require.NoError(t, script(`return redis.call('SET', KEYS[1], 'v', 'PX', 1000)`).Error())
	held := 0
	require.Eventually(t, func() bool {
		count, err := script(`return redis.call('EXISTS', KEYS[1])`).AsInt64()
		require.NoError(t, err)
		if count == 0 {
			require.GreaterOrEqual(t, time.Since(sent), lease)
		} else {
			held++
		}
		return count == 0
	}, lease+5*time.Second, 5*ms)
	require.Positive(t, held)
}

// A key does not expire during a script.
func TestEmbeddedClockStopsDuringAScript(t *testing.T) {
	_, client := startedEmbedded(t)
	text := `
		redis.call('SET', KEYS[1], 'v', 'PX', 1)
		for i = 1, 3000 do
			if redis.call('EXISTS', KEYS[1]) == 0 then return i end
		end
		return 0`
	began := time.Now()
	gone, err := client.Do(t.Context(),
		client.B().Eval().Script(text).Numkeys(1).Key("k").Build()).AsInt64()
	require.NoError(t, err)
	require.Zero(t, gone)
	require.Greater(t, time.Since(began), time.Millisecond,
		"the script was over before the key could expire")
}

func TestOtherAddressesAreRefused(t *testing.T) {
	for _, address := range []string{"localhost", "http://localhost:6379", "redis://localhost/x"} {
		_, err := server{Address: address}.connect(t.Context())
		require.ErrorContains(t, err, "--redis: ", "%q", address)
	}
}

// The scene uses these servers and no others.
func TestStoppedNodeIsGoneAndTheOthersReply(t *testing.T) {
	all := played()
	nodes := nodes{}
	t.Cleanup(nodes.Close)
	require.NoError(t, nodes.start(all))
	stage := stage{scenes: all, nodes: nodes}
	stage.obey("stop node2")
	require.Equal(t, "node2 died", stage.pending[0].name())
	require.Equal(t, "redlock", stage.pending[0].Lock)
	distinct := map[string]bool{}
	for i, node := range find(all, "redlock").cast[0].Nodes {
		distinct[node.Address] = true
		client, err := node.connect(t.Context())
		if i == 1 {
			require.ErrorContains(t, err, "127.0.0.1")
			continue
		}
		require.NoError(t, err)
		client.Close()
	}
	require.Len(t, distinct, 5)
}

// find returns the scene with that lock.
func find(all []scene, lock string) scene {
	return all[slices.IndexFunc(all, func(s scene) bool { return s.lock == lock })]
}
