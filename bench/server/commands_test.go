package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallsLeaveOutTheBenchmarksOwn(t *testing.T) {
	calls, err := parseCalls("# Commandstats\r\n" +
		"cmdstat_evalsha:calls=12,usec=40,usec_per_call=3.33,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_client|tracking:calls=2,usec=1\r\ncmdstat_client|id:calls=1,usec=1\r\ncmdstat_info:calls=3,usec=9\r\n")
	require.NoError(t, err)
	require.Equal(t, Calls{"evalsha": 12, "client": 3}, calls)
}

func TestCommandsOfScriptsAreNotCountedAsThoseOfClients(t *testing.T) {
	o := Origins{clients: Calls{}, scripts: Calls{}}
	for _, line := range []string{
		"+1700000000.1 [0 127.0.0.1:50000] \"EVALSHA\" \"] \\\"hset\\\"\"\r\n",
		"+1700000000.2 [0 lua] \"hset\" \"a\" \"b\"\r\n",
		"+1700000000.3 [0 lua] \"publish\" \"c\" \"0\"\r\n",
		"+1700000000.4 [0 unix:/tmp/s] \"publish\" \"c\" \"0\"\r\n",
		"+1700000000.5 [0 127.0.0.1:50001] \"info\"\r\n",
	} {
		o.count(line)
	}
	require.Equal(t, Calls{"evalsha": 1, "publish": 1}, o.clients)
	require.Equal(t, Calls{"hset": 1, "publish": 1}, o.scripts)
	require.InDelta(t, 10+3+5, o.Clients(Calls{"evalsha": 10, "hset": 20, "publish": 6, "ping": 5}), 1e-9,
		"half of what is published came from clients, and a ping that was not seen is nobody's script")
}
