//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestReleaseOnCloseReleasesWhatOtherNodesHave(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := newClientOn(t, cluster.Client(t),
		rlock.Options{ReleaseOnClose: true, CommandTimeout: 500 * time.Millisecond})
	names := oneLockPerNode(t, cluster)
	for _, name := range names {
		take(t, client.NewLock(name), longLease)
		take(t, client.NewLock("{"+name+"}:more"), longLease)
	}
	cluster.Nodes[0].Pause(t)
	closing := make(chan error, 1)
	go func() { closing <- client.Close(t.Context()) }()
	for _, node := range cluster.Nodes[1:] {
		waitUntilFree(t, node, names[node])
		waitUntilFree(t, node, "{"+names[node]+"}:more")
	}
	cluster.Nodes[0].Resume(t)
	require.NoError(t, receive(t, closing, "Close hangs"))
}
