package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/printable"
)

// A replica chooses the address that its master shows.
func TestFindingsEscapeWhatTheServerSays(t *testing.T) {
	t.Parallel()
	redis := saying(t, "role:master", "connected_slaves:2",
		"slave0:ip=\x1b[2J,port=1,state=\x1b[31m,offset=0,lag=0",
		"slave1:ip=\x9b2J,port=1,state=online,offset=0,lag=900")
	found := examined(t, redis, "replicas", Options{})
	require.Len(t, found, 2)
	for _, f := range found {
		require.Equal(t, printable.Text(f.Text), f.Text)
	}
	redis = saying(t, "role:slave", "master_host:\x1b[2J", "master_port:1", "master_link_status:up")
	for _, f := range examined(t, redis, "role", Options{}) {
		require.Equal(t, printable.Text(f.Text), f.Text)
	}
}
