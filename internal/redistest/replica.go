package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// StartReplica starts a server that copies master, and returns when it is in sync: from then on it
// acknowledges writes. The master must have been started with [WithHostNetwork], and should have
// [WithFastReplicas]. opts apply to the replica, which has the master's certificate anyway.
//
// A replica that is paused lags. One that is killed is gone for the master at once.
func StartReplica(tb testing.TB, master *Server, opts ...Option) *Server {
	tb.Helper()
	certificate := func(_ testing.TB, s *settings) { s.tls = master.settings.tls }
	replica := Start(tb, with(opts, WithHostNetwork(), certificate)...)
	if password := master.settings.password; password != "" {
		replica.Do(tb, "CONFIG", "SET", "masterauth", password)
	}
	replica.Do(tb, "REPLICAOF", host, strconv.Itoa(master.port))
	WaitForReplica(tb, master, replica)
	return replica
}

// WaitForReplica waits until a replica is in sync with its master.
func WaitForReplica(tb testing.TB, master, replica *Server) {
	tb.Helper()
	require.Eventually(tb, func() bool { return master.serves(replica) }, startTimeout,
		10*time.Millisecond,
		"%s does not get in sync with %s", replica.Addr(), master.Addr())
}

// WithFastReplicas lets a master serve a new replica at once. Otherwise it would wait 5 s for more
// of them, and 1 s for the first sign of life.
func WithFastReplicas() Option {
	// The master trusts a replica that gets its data as a file to have it.
	return WithArgs("--repl-diskless-sync", "no", "--repl-diskless-sync-delay", "0",
		"--repl-ping-replica-period", "1")
}

// serves reports whether the replica acknowledges writes. A replica may count as online before: the
// master holds writes back until it has heard of the replica once more, which takes up to a second.
func (s *Server) serves(replica *Server) bool {
	c, err := s.dial(commandTimeout)
	if err != nil {
		return false
	}
	defer c.Close()
	// The command goes to the replicas, and leaves nothing behind.
	if _, err := c.call("PUBLISH", "redistest", "is there anybody"); err != nil {
		return false
	}
	written, err := c.replication()
	if err != nil {
		return false
	}
	// Make the replicas report at once what they have, which counts as another write.
	if _, err := c.call("WAIT", "100", "20"); err != nil {
		return false
	}
	info, err := c.replication()
	if err != nil {
		return false
	}
	for i := range 100 {
		state := infoField(info, "slave"+strconv.Itoa(i))
		if state == "" {
			return false
		}
		// Such as ip=127.0.0.1,port=6380,state=online,offset=14,lag=0. There is no offset before
		// the first replica.
		fields := strings.Split(state, ",")
		if slices.Contains(fields, "port="+strconv.Itoa(replica.port)) {
			want := max(1, offset(strings.Fields(written), "master_repl_offset:"))
			return slices.Contains(fields, "state=online") && offset(fields, "offset=") >= want
		}
	}
	return false
}

// replication returns what the server reports about its replicas.
func (c *conn) replication() (string, error) {
	reply, err := c.call("INFO", "replication")
	info, _ := reply.(string)
	return info, err
}

// offset returns the number after prefix in one of the fields, or 0.
func offset(fields []string, prefix string) int64 {
	for _, field := range fields {
		if number, ok := strings.CutPrefix(field, prefix); ok {
			n, _ := strconv.ParseInt(number, 10, 64) // the server's own, or 0
			return n
		}
	}
	return 0
}
