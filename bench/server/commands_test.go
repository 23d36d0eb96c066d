package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCallsOmitTheBenchmarksOwn(t *testing.T) {
	calls, err := parseCalls("# Commandstats\r\n" +
		"cmdstat_evalsha:calls=12,usec=40,usec_per_call=3.33,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_client|tracking:calls=2,usec=1\r\ncmdstat_client|id:calls=1,usec=1\r\n" +
		"cmdstat_info:calls=3,usec=9\r\n")
	require.NoError(t, err)
	require.Equal(t,
		Calls{"evalsha": {12, 40 * time.Microsecond}, "client": {3, 2 * time.Microsecond}}, calls)
}

func TestCommandsOfScriptsAreNotCountedForClients(t *testing.T) {
	o := Origins{clients: counts{}, scripts: counts{}}
	for _, line := range []string{
		"+1700000000.1 [0 127.0.0.1:50000] \"EVALSHA\" \"] \\\"hset\\\"\"\r\n",
		"+1700000000.2 [0 lua] \"hset\" \"a\" \"b\"\r\n",
		"+1700000000.3 [0 lua] \"publish\" \"c\" \"0\"\r\n",
		"+1700000000.4 [0 unix:/tmp/s] \"publish\" \"c\" \"0\"\r\n",
		"+1700000000.5 [0 127.0.0.1:50001] \"info\"\r\n",
	} {
		o.count(line)
	}
	require.Equal(t, counts{"evalsha": 1, "publish": 1}, o.clients)
	require.Equal(t, counts{"hset": 1, "publish": 1}, o.scripts)
	sent, took := o.Clients(Calls{"evalsha": {10, 100}, "hset": {20, 30}, "publish": {6, 20},
		"ping": {Count: 5}})
	require.EqualValues(t, 100+10, took)
	require.InDelta(t, 10+3+5, sent, 1e-9,
		"clients sent half of the publishes, and a ping that was not seen is no script's")
}
