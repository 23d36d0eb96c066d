package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"holdfast/bench/worker"
)

// StartCluster starts a cluster of masters, and returns when all of them know all slots.
func StartCluster(ctx context.Context, masters int) (nodes []*Server, err error) {
	defer func() {
		if err != nil {
			for _, n := range nodes {
				n.Stop()
			}
		}
	}()
	const slots = 16384
	for i := range masters {
		n, err := Start(ctx, worker.AnyCore, "--cluster-enabled", "yes")
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
		_, port, _ := net.SplitHostPort(nodes[0].Address)
		err = n.do([]string{"CLUSTER", "ADDSLOTSRANGE",
			strconv.Itoa(slots * i / masters), strconv.Itoa(slots*(i+1)/masters - 1)},
			[]string{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
			[]string{"CLUSTER", "MEET", "127.0.0.1", port})
		if err != nil {
			return nodes, err
		}
	}
	for _, n := range nodes {
		if err := n.joined(ctx, masters); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

func (s *Server) do(commands ...[]string) error {
	conn, err := Dial(s.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Pipeline(commands)
	return err
}

// joined waits until the node serves a cluster with so many masters.
func (s *Server) joined(ctx context.Context, masters int) error {
	conn, err := Dial(s.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range 300 {
		info, err := conn.Do("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", masters)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the nodes of the cluster have not met within 30 s")
}
