package chaos

import (
	"time"

	"holdfast/internal/redistest"
)

// The faults of servers. Those that forget break promises that no lock on one Redis can keep: see Expected in package
// history for what is asserted instead.
var (
	// ServerStopped stops a server, and lets it go on.
	ServerStopped = Fault{Name: "server stopped", lasts: watchdogLease, settles: 2 * command, begin: func(r *run) ([]string, func()) {
		s := r.server()
		s.Pause(r.tb)
		return nil, func() { s.Resume(r.tb) }
	}}

	// ServerRestarted kills a server and starts it again with all that it knew.
	ServerRestarted = Fault{Name: "server restarted", lasts: watchdogLease / 2, settles: 2 * command, begin: restart}

	// ServerEmptied kills a server that keeps nothing, and starts it again.
	ServerEmptied = Fault{Name: "server restarted empty", Forgets: true, lasts: watchdogLease / 2, settles: 2 * command, begin: restart}

	// MinorityStopped and MinorityEmptied are the same for a RedLock, which has to bear them: one or two of five at a time.
	MinorityStopped = Fault{Name: "minority stopped", lasts: watchdogLease, settles: 2 * command, begin: ServerStopped.begin}
	MinorityEmptied = Fault{Name: "minority restarted empty", lasts: watchdogLease / 2, settles: watchdogLease + 2*time.Second, begin: restart}

	// Flushed deletes everything.
	Flushed = Fault{Name: "FLUSHALL", Forgets: true, settles: command, begin: func(r *run) ([]string, func()) {
		return nil, momentary(r.server().Call("FLUSHALL"))
	}}

	// ScriptsFlushed has a server forget its scripts.
	ScriptsFlushed = Fault{Name: "SCRIPT FLUSH", settles: command, begin: func(r *run) ([]string, func()) {
		return nil, momentary(r.server().Call("SCRIPT", "FLUSH"))
	}}

	// ClientsKilled has a server end all connections.
	ClientsKilled = Fault{Name: "CLIENT KILL", settles: command, begin: func(r *run) ([]string, func()) {
		s := r.server()
		_, err := s.Call("CLIENT", "KILL", "TYPE", "pubsub")
		if err == nil {
			_, err = s.Call("CLIENT", "KILL", "TYPE", "normal")
		}
		return nil, momentary(nil, err)
	}}

	// ExpiryCut ends leases before their time, as a server does whose clock jumps ahead: the TTL of each key becomes a
	// third.
	ExpiryCut = Fault{Name: "expiry cut", Forgets: true, settles: command, begin: func(r *run) ([]string, func()) {
		return nil, momentary(r.server().Call("EVAL", cutExpiry, "0"))
	}}

	// Failover makes a replica the master. What it had not received yet is lost.
	Failover = Fault{Name: "failover", Forgets: true, settles: 4 * command, begin: func(r *run) ([]string, func()) {
		r.world.failover(r)
		return nil, func() {}
	}}

	// SlotMoved moves the slot of a lock to another master of the cluster, keys and all.
	SlotMoved = Fault{Name: "slot moved", settles: 2 * command, begin: func(r *run) ([]string, func()) {
		r.world.moveSlot(r)
		return nil, func() {}
	}}
)

// cutExpiry is a script, so that no lease is renewed between the look and the cut.
const cutExpiry = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 2 then
    redis.call('PEXPIRE', key, math.floor(left / 3))
  end
end`

// momentary is the end of a fault that was over at once; nil if it did not happen, because another fault has the server.
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

// server draws a server that may fail.
func (r *run) server() *redistest.Server { return r.world.servers[r.dice.IntN(len(r.world.servers))] }
