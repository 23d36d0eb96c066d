package chaos

import (
	"net"
	"time"
)

// The faults of servers. Those that forget break promises that no lock on one Redis can keep: see
// Expected in package history for what is asserted instead.
var (
	// ServerStopped stops a server and resumes it.
	ServerStopped = Fault{Name: "server stopped", ofServers: true, Delays: true, lasts: 1,
		settles: 2 * command, begin: func(r *run) ([]string, func()) {
			s := r.server()
			s.Pause(r.tb)
			return nil, func() { s.Resume(r.tb) }
		}}

	// ServerRestarted kills a server and starts it again with all its data.
	ServerRestarted = Fault{Name: "server restarted", ofServers: true, lasts: 0.5,
		settles: 2 * command, begin: restart}

	// ServerEmptied kills a server that stores nothing, and starts it again.
	ServerEmptied = Fault{Name: "server restarted empty", ofServers: true, Forgets: true,
		lasts: 0.5, settles: 2 * command, begin: restart}

	// MinorityStopped and MinorityEmptied are the same for a RedLock, which must survive them: one
	// or two nodes of five at a time.
	MinorityStopped = Fault{Name: "minority stopped", ofServers: true, Delays: true, lasts: 1,
		settles: 2 * command, begin: ServerStopped.begin}
	MinorityEmptied = Fault{Name: "minority restarted empty", ofServers: true, lasts: 0.5,
		settles: usualLease + 2*time.Second, begin: restart}

	// Flushed deletes everything.
	Flushed = Fault{Name: "FLUSHALL", ofServers: true, Forgets: true, settles: command,
		begin: func(r *run) ([]string, func()) {
			return nil, momentary(r.server().Call("FLUSHALL"))
		}}

	// Deleted deletes a lock.
	Deleted = Fault{Name: "DEL", ofServers: true, Forgets: true, KeepsTokens: true, settles: command,
		begin: func(r *run) ([]string, func()) {
			return nil, momentary(r.server().Call("DEL", r.name()))
		}}

	// ScriptsFlushed has a server forget its scripts.
	ScriptsFlushed = Fault{Name: "SCRIPT FLUSH", ofServers: true, settles: command,
		begin: func(r *run) ([]string, func()) {
			return nil, momentary(r.server().Call("SCRIPT", "FLUSH"))
		}}

	// ClientsKilled has a server close all connections.
	ClientsKilled = Fault{Name: "CLIENT KILL", ofServers: true, settles: command,
		begin: func(r *run) ([]string, func()) {
			s := r.server()
			_, err := s.Call("CLIENT", "KILL", "TYPE", "pubsub")
			if err == nil {
				_, err = s.Call("CLIENT", "KILL", "TYPE", "normal")
			}
			return nil, momentary(nil, err)
		}}

	// ExpiryCut ends leases early, like a server whose clock jumps ahead: the TTL of each key
	// becomes a third.
	ExpiryCut = Fault{Name: "expiry cut", ofServers: true, Forgets: true, KeepsTokens: true,
		settles: command, begin: func(r *run) ([]string, func()) {
			return nil, momentary(r.server().Call("EVAL", cutExpiry, "0"))
		}}

	// HandedOver has a replica of a cluster take its master's place while both are well. Nothing is
	// lost.
	HandedOver = Fault{Name: "handed over", ofServers: true, settles: 4 * command, begin: failover}

	// Failover has the Sentinels promote a replica. Writes that it has not received yet are lost.
	Failover = Fault{Name: "failover", ofServers: true, Forgets: true, settles: 4 * command,
		begin: failover}

	// MasterKilled kills the master of a Sentinel group, and a replica takes its place. The old one
	// comes back as a master and is demoted at once: the Sentinels would take seconds, in which it
	// grants locks.
	MasterKilled = Fault{Name: "master killed", ofServers: true, Forgets: true,
		settles: 4 * command, begin: func(r *run) ([]string, func()) {
			name := r.name()
			old := r.world.Home(r.tb, name)
			old.Kill(r.tb)
			host, port, err := net.SplitHostPort(r.world.Failover(r.tb, name).Addr())
			r.check(err)
			return nil, func() {
				old.Restart(r.tb)
				old.Do(r.tb, "REPLICAOF", host, port)
			}
		}}

	// SlotMoved moves the slot of a lock to another master of the cluster, with its keys.
	SlotMoved = Fault{Name: "slot moved", ofServers: true, settles: 2 * command,
		begin: func(r *run) ([]string, func()) {
			r.world.MoveSlot(r.tb, r.name())
			return nil, func() {}
		}}
)

// cutExpiry is a script, so that no lease is renewed between reading and cutting it.
const cutExpiry = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 2 then
    redis.call('PEXPIRE', key, math.floor(left / 3))
  end
end`

// momentary returns the end of a momentary fault; nil if it did not happen, because another fault
// has the server.
func momentary(_ any, err error) func() {
	if err != nil {
		return nil
	}
	return func() {}
}

func restart(r *run) ([]string, func()) {
	s := r.server()
	s.Kill(r.tb)
	return nil, func() { s.Restart(r.tb) }
}

func failover(r *run) ([]string, func()) {
	r.world.Failover(r.tb, r.name())
	return nil, func() {}
}

// server draws a master.
func (r *run) server() server {
	masters := r.stage.masters(r.tb)
	return masters[r.dice.IntN(len(masters))]
}

// name draws the name of a lock.
func (r *run) name() string {
	names := r.scenario.names()
	return names[r.dice.IntN(len(names))]
}
