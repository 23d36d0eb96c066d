package chaos

import (
	"net"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration/history"
	"holdfast/internal/redistest"
)

// The faults that are not the trouble of the locks that are held, or of any: see their Spares.
var (
	// KeyForbidden forbids one of the locks that each process keeps, as an ACL does. It happens in
	// bubbles only.
	KeyForbidden = Fault{Name: "key forbidden", ofServers: true, least: 1.5, lasts: 2,
		Spares: []string{history.Kept, history.Waits, history.Answers},
		except: func(r *run) []string {
			var first []string
			for _, s := range r.slots {
				first = append(first, r.scenario.kept(s.name())[0])
			}
			return first
		},
		begin: func(r *run) ([]string, func()) {
			s := r.server().(*virtualServer)
			s.RejectNames("0-kept-", "NOPERM No permissions to access a key")
			return nil, func() { s.RejectNames("", "") }
		}}

	// ReplicaStopped stops the replicas that must acknowledge what is acquired. Nothing can be
	// acquired, and what is held has nothing to do with it.
	ReplicaStopped = Fault{Name: "replica stopped", ofServers: true, least: 1.5, lasts: 2,
		Spares: []string{history.Kept, history.Waits}, settles: command,
		begin: func(r *run) ([]string, func()) {
			replicas := r.world.Replicas(r.tb)
			for _, s := range replicas {
				s.Pause(r.tb)
			}
			return nil, func() {
				for _, s := range replicas {
					s.Resume(r.tb)
				}
			}
		}}

	// EndpointMoved hands over to the replica without loss and moves the only address that clients
	// know there, and later back. Connections stay where they are: at a replica.
	EndpointMoved = Fault{Name: "endpoint moved", ofServers: true, least: 1.5, lasts: 2,
		Spares: []string{history.Kept, history.Waits}, settles: 4 * command,
		begin: func(r *run) ([]string, func()) {
			master, replica := r.world.Masters(r.tb)[0], r.world.Replicas(r.tb)[0]
			r.moveEndpoint(master, replica, replica.Addr())
			return nil, func() { r.moveEndpoint(replica, master, master.Addr()) }
		}}

	// IdleClosed closes all connections while nobody uses them.
	IdleClosed = Fault{Name: "idle connections closed", ofServers: true,
		Spares: []string{history.Kept, history.Waits, history.Answers},
		wait: func(r *run) {
			burst := r.scenario.Burst
			r.rest(burst*3/4 + burst - time.Duration(history.Now())%burst)
		},
		begin: ClientsKilled.begin}
)

// moveEndpoint makes to the master in place of from, and has new connections of all processes reach
// it. They know the master that the run began with.
//
// The command FAILOVER would stop all writes until the replica has reported its offset, which may
// take more than two seconds after an earlier move. No client can renew a lock in that time.
func (r *run) moveEndpoint(from, to *redistest.Server, address string) {
	host, port, err := net.SplitHostPort(to.Addr())
	r.check(err)
	redistest.WaitForReplica(r.tb, from, to)
	from.Do(r.tb, "CLIENT", "PAUSE", "10000", "WRITE")
	require.Eventually(r.tb, func() bool {
		written, copied := offset(from), offset(to)
		return written != nil && copied == written
	}, 10*time.Second, time.Millisecond, "%s does not copy all writes", to.Addr())
	to.Do(r.tb, "REPLICAOF", "NO", "ONE")
	from.Do(r.tb, "REPLICAOF", host, port)
	from.Do(r.tb, "CLIENT", "UNPAUSE")
	for _, s := range r.slots {
		s.links[slices.Index(r.world.dialled(), r.world.Masters(r.tb)[0])].MoveTo(address)
	}
}

// offset returns the offset of the last write that a server has, or nil if the server does not say.
func offset(s *redistest.Server) any {
	reply, _ := s.Call("ROLE")
	switch about, _ := reply.([]any); {
	case len(about) == 3: // a master
		return about[1]
	case len(about) == 5: // a replica
		return about[4]
	}
	return nil
}
