package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// StartReplica starts a server that copies master, and returns when it is in step: from then on it acknowledges what is
// written. The master must have been started with [WithHostNetwork], and should have [WithFastReplicas]. opts apply to
// the replica, which has the master's certificate anyway.
//
// A replica that is paused is one that lags. One that is killed is gone for the master at once.
func StartReplica(tb testing.TB, master *Server, opts ...Option) *Server {
	tb.Helper()
	certificate := func(_ testing.TB, s *settings) { s.tls = master.settings.tls }
	replica := Start(tb, with(opts, WithHostNetwork(), certificate)...)
	if password := master.settings.password; password != "" {
		replica.Do(tb, "CONFIG", "SET", "masterauth", password)
	}
	replica.Do(tb, "REPLICAOF", host, strconv.Itoa(master.port))
	AwaitReplica(tb, master, replica)
	return replica
}

// AwaitReplica waits until a replica is in step with its master.
func AwaitReplica(tb testing.TB, master, replica *Server) {
	tb.Helper()
	require.Eventually(tb, func() bool { return master.serves(replica) }, startTimeout, 10*time.Millisecond,
		"%s does not get in step with %s", replica.Addr(), master.Addr())
}

// WithFastReplicas lets a master serve a new replica at once, where it would wait 5 s for more of them, and 1 s for the
// first sign of life.
func WithFastReplicas() Option {
	// A replica that gets its data as a file is trusted to have it.
	return WithArgs("--repl-diskless-sync", "no", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
}

// serves tells whether the replica acknowledges what is written. A replica that counts as online need not do so yet: the
// master keeps what is written for it to itself until it has heard of it once more, which takes up to a second.
func (s *Server) serves(replica *Server) bool {
	c, err := s.dial(commandTimeout)
	if err != nil {
		return false
	}
	defer c.Close()
	// It goes to the replicas, and leaves nothing behind.
	if _, err := c.call("PUBLISH", "redistest", "is there anybody"); err != nil {
		return false
	}
	written, err := c.replication()
	if err != nil {
		return false
	}
	// Has the replicas say at once what they have, which adds to what is written.
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
		// Such as ip=127.0.0.1,port=6380,state=online,offset=14,lag=0. There is no offset before the first replica.
		fields := strings.Split(state, ",")
		if slices.Contains(fields, "port="+strconv.Itoa(replica.port)) {
			want := max(1, offset(strings.Fields(written), "master_repl_offset:"))
			return slices.Contains(fields, "state=online") && offset(fields, "offset=") >= want
		}
	}
	return false
}

// replication is what the server says about its replicas.
func (c *conn) replication() (string, error) {
	reply, err := c.call("INFO", "replication")
	info, _ := reply.(string)
	return info, err
}

// offset is the number behind prefix in one of the fields, 0 if there is none.
func offset(fields []string, prefix string) int64 {
	for _, field := range fields {
		if number, ok := strings.CutPrefix(field, prefix); ok {
			n, _ := strconv.ParseInt(number, 10, 64) // the server's own, and else 0
			return n
		}
	}
	return 0
}
