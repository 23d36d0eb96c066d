package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each node lists the others in an order of its own. Findings that are the same are reported once.
func TestNodesOfAClusterAreNamedInOneOrder(t *testing.T) {
	t.Parallel()
	const (
		first  = "a 127.0.0.1:1@11 master - 0 0 1 connected 0-8191\n"
		second = "b 127.0.0.1:2@12 master - 0 0 2 connected 8192-16383\n"
		third  = "c 127.0.0.1:3@13 master,fail - 0 0 3 disconnected\n"
		fourth = "d 127.0.0.1:4@14 slave,fail b 0 0 2 disconnected\n"
	)
	for _, lines := range []string{first + second + third + fourth, fourth + third + second + first} {
		failing, lonely := weakNodes(lines)
		require.Equal(t, []string{"127.0.0.1:3", "127.0.0.1:4"}, failing)
		require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"}, lonely)
	}
}
