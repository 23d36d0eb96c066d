package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// healthTimeout bounds the wait until servers find each other again. A cluster node that was
	// away for long is accepted again after its node timeout of 15 s.
	healthTimeout = 45 * time.Second
	// failoverTimeout bounds a failover on request or after a master's death, on a busy machine.
	failoverTimeout = 30 * time.Second
	// replyTimeout bounds the reply of a running server, so that one that does not reply is noticed
	// soon.
	replyTimeout = time.Second
)

// Failover lets a replica replace master, and returns it when all nodes that reply know. A running
// master hands over without loss (CLUSTER FAILOVER), and becomes a replica. A master that was
// killed, paused or isolated is replaced with what the replica has (TAKEOVER), and follows when it
// is back. tb fails when no replica of master replies.
func (c *Cluster) Failover(tb testing.TB, master *Server) *Server {
	tb.Helper()
	replicas := c.ReplicasOf(master)
	require.NotEmpty(tb, replicas,
		"no replica of %s replies: WithReplicas starts some", master.Addr())
	replica := replicas[0]
	command := []string{"CLUSTER", "FAILOVER"}
	if master.mayReply() { // a takeover would lose what a slow master has acknowledged
		// The master must consent and the others must vote at once: a lost election delays the next
		// by a minute.
		require.Eventually(tb, func() bool {
			id, err := master.ask("CLUSTER", "MYID")
			return err == nil && c.knowReplica(fmt.Sprint(id), replica)
		}, failoverTimeout, 10*time.Millisecond,
			"not all nodes know that %s is a replica of %s", replica.Addr(), master.Addr())
	} else {
		command = append(command, "TAKEOVER")
	}
	slot := c.firstSlot(tb, replica, master)
	// A master that is busy with its other replicas may let the attempt time out.
	again := time.Time{}
	require.Eventually(tb, func() bool {
		if replica.role() == "master" {
			return c.agreed(slot, replica)
		}
		if time.Now().After(again) {
			// An error means that a failover is in progress, or not possible yet.
			_, err := replica.Call(command...)
			if err == nil {
				again = time.Now().Add(5 * time.Second)
			}
		}
		return false
	}, failoverTimeout, 10*time.Millisecond,
		"%s does not replace %s", replica.Addr(), master.Addr())
	return replica
}

// ReplicasOf returns the nodes that reply and copy master.
func (c *Cluster) ReplicasOf(master *Server) []*Server {
	var replicas []*Server
	for _, node := range c.All() {
		if node.copies() == master.port {
			replicas = append(replicas, node)
		}
	}
	return replicas
}

// Masters returns the nodes that reply and serve slots, according to the first node that replies.
func (c *Cluster) Masters(tb testing.TB) []*Server {
	tb.Helper()
	elements := as[[]any](tb, c.witness(tb).Do(tb, "CLUSTER", "SLOTS"),
		[]string{"CLUSTER", "SLOTS"})
	var ports []int64
	for _, element := range elements {
		ports = append(ports, element.([]any)[2].([]any)[1].(int64))
	}
	var masters []*Server
	for _, node := range c.All() {
		if slices.Contains(ports, int64(node.port)) && node.Replies() {
			masters = append(masters, node)
		}
	}
	return masters
}

// knowReplica reports whether all nodes that reply see replica as one of the master with that id.
func (c *Cluster) knowReplica(id string, replica *Server) bool {
	for _, node := range c.All() {
		if !node.Replies() {
			continue
		}
		reply, err := node.ask("CLUSTER", "REPLICAS", id)
		lines, _ := reply.([]any)
		listed := slices.ContainsFunc(lines, func(line any) bool {
			return strings.Contains(fmt.Sprint(line), " "+replica.Addr()+"@")
		})
		if err != nil || !listed {
			return false
		}
	}
	return true
}

// firstSlot returns a slot that master serves, according to its replica.
func (c *Cluster) firstSlot(tb testing.TB, replica, master *Server) int {
	tb.Helper()
	for _, element := range as[[]any](tb, replica.Do(tb, "CLUSTER", "SLOTS"),
		[]string{"CLUSTER", "SLOTS"}) {
		entry := element.([]any)
		if entry[2].([]any)[1] == int64(master.port) {
			return int(entry[0].(int64))
		}
	}
	require.Fail(tb, "a master that serves no slot cannot be replaced", master.Addr())
	return 0
}

// agreed reports whether all nodes that reply see owner serve slot.
func (c *Cluster) agreed(slot int, owner *Server) bool {
	for _, node := range c.All() {
		if !node.Replies() {
			continue
		}
		if seen, err := c.ownerSeenBy(node, slot); err != nil || seen != owner {
			return false
		}
	}
	return true
}

// Replies reports whether the server replies soon.
func (s *Server) Replies() bool {
	_, err := s.ask("PING")
	return err == nil
}

// mayReply reports whether the server was not killed, paused or isolated.
func (s *Server) mayReply() bool { return !s.silent.Load() && s.Running() }

// ask is [Server.Call] for a server that may be paused or gone.
func (s *Server) ask(args ...string) (any, error) {
	if !s.mayReply() {
		return nil, errors.New(s.Addr() + " was made not to reply")
	}
	c, err := s.dial(replyTimeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.call(args...)
}

// role returns master or slave, or "" if the server does not reply.
func (s *Server) role() string {
	role, _ := s.replicationRole()
	return role
}

// copies returns the port of a replica's master, or 0 if the server is no replica or does not
// reply.
func (s *Server) copies() int {
	_, info := s.replicationRole()
	port, _ := strconv.Atoi(infoField(info, "master_port")) // 0 without such a field
	return port
}

func (s *Server) replicationRole() (role, info string) {
	reply, err := s.ask("INFO", "replication")
	info, _ = reply.(string)
	if err != nil {
		return "", ""
	}
	return infoField(info, "role"), info
}
