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
	// healthTimeout is for servers to find each other again. A cluster node that
	// was away for long is taken back after its node timeout, 15 s.
	healthTimeout = 45 * time.Second
	// failoverTimeout is for a failover that was asked for, or that follows a
	// master's death, on a busy machine.
	failoverTimeout = 30 * time.Second
	// answerTimeout is for a server that runs, so that one that does not answer is
	// noticed soon.
	answerTimeout = time.Second
)

// Failover has a replica take the place of master, and returns that replica when
// all nodes that answer know. A master that runs hands over without losing
// anything (CLUSTER FAILOVER), and becomes a replica. For one that was killed,
// paused or isolated the replica takes over with what it has (TAKEOVER), and the
// master follows when it is back. tb fails when no replica of master answers.
func (c *Cluster) Failover(tb testing.TB, master *Server) *Server {
	tb.Helper()
	replicas := c.ReplicasOf(master)
	require.NotEmpty(tb, replicas, "no replica of %s answers: WithReplicas gives it some", master.Addr())
	replica := replicas[0]
	command := []string{"CLUSTER", "FAILOVER"}
	if master.mayAnswer() { // however slow it is: a takeover would lose what it has promised
		// The master has to let it, and the others to vote for it, at once: a lost election holds for a minute.
		require.Eventually(tb, func() bool {
			id, err := master.ask("CLUSTER", "MYID")
			return err == nil && c.knowReplica(fmt.Sprint(id), replica)
		}, failoverTimeout, 10*time.Millisecond,
			"not everybody knows that %s is a replica of %s", replica.Addr(), master.Addr())
	} else {
		command = append(command, "TAKEOVER")
	}
	slot := c.firstSlot(tb, replica, master)
	// A master that is busy with its other replicas may let the attempt run out.
	again := time.Time{}
	require.Eventually(tb, func() bool {
		if replica.role() == "master" {
			return c.agreed(slot, replica)
		}
		if time.Now().After(again) {
			_, err := replica.Call(command...) // an error means that it is under way, or that it is not yet possible
			if err == nil {
				again = time.Now().Add(5 * time.Second)
			}
		}
		return false
	}, failoverTimeout, 10*time.Millisecond, "%s does not take the place of %s", replica.Addr(), master.Addr())
	return replica
}

// ReplicasOf returns the nodes that answer and copy master.
func (c *Cluster) ReplicasOf(master *Server) []*Server {
	var replicas []*Server
	for _, node := range c.All() {
		if node.copies() == master.port {
			replicas = append(replicas, node)
		}
	}
	return replicas
}

// Masters returns the nodes that answer and serve slots in the eyes of the first
// node that answers.
func (c *Cluster) Masters(tb testing.TB) []*Server {
	tb.Helper()
	elements := as[[]any](tb, c.witness(tb).Do(tb, "CLUSTER", "SLOTS"), []string{"CLUSTER", "SLOTS"})
	var ports []int64
	for _, element := range elements {
		ports = append(ports, element.([]any)[2].([]any)[1].(int64))
	}
	var masters []*Server
	for _, node := range c.All() {
		if slices.Contains(ports, int64(node.port)) && node.answers() {
			masters = append(masters, node)
		}
	}
	return masters
}

// knowReplica tells whether all nodes that answer take replica for one of the
// master with that id.
func (c *Cluster) knowReplica(id string, replica *Server) bool {
	for _, node := range c.All() {
		if !node.answers() {
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

// firstSlot is a slot that master serves in the eyes of its replica.
func (c *Cluster) firstSlot(tb testing.TB, replica, master *Server) int {
	tb.Helper()
	for _, element := range as[[]any](tb, replica.Do(tb, "CLUSTER", "SLOTS"), []string{"CLUSTER", "SLOTS"}) {
		entry := element.([]any)
		if entry[2].([]any)[1] == int64(master.port) {
			return int(entry[0].(int64))
		}
	}
	require.Fail(tb, "a master that serves no slot cannot be replaced", master.Addr())
	return 0
}

// agreed tells whether all nodes that answer see owner serve slot.
func (c *Cluster) agreed(slot int, owner *Server) bool {
	for _, node := range c.All() {
		if !node.answers() {
			continue
		}
		if seen, err := c.ownerSeenBy(node, slot); err != nil || seen != owner {
			return false
		}
	}
	return true
}

// answers tells whether the server answers soon.
func (s *Server) answers() bool {
	_, err := s.ask("PING")
	return err == nil
}

// mayAnswer tells whether nobody has killed, paused or isolated the server.
func (s *Server) mayAnswer() bool { return !s.silent.Load() && s.Running() }

// ask is [Server.Call] for a server that may be paused or gone.
func (s *Server) ask(args ...string) (any, error) {
	if !s.mayAnswer() {
		return nil, errors.New(s.Addr() + " was made not to answer")
	}
	c, err := s.dial(answerTimeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.call(args...)
}

// role is master or slave, "" if the server does not answer.
func (s *Server) role() string {
	role, _ := s.replicationRole()
	return role
}

// copies is the port of the master of a replica, 0 if the server is none or does
// not answer.
func (s *Server) copies() int {
	_, info := s.replicationRole()
	port, _ := strconv.Atoi(infoField(info, "master_port")) // 0 where there is no such field
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
