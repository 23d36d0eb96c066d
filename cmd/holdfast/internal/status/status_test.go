package status

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextNamesFlagsInsteadOfFields(t *testing.T) {
	require.Equal(t, "renewal takes longer than a third of --lease",
		Text("holdfast: renewal takes longer than a third of Options.WatchdogLease"))
	require.Equal(t, "see --tls", Text("see rueidis.ClientOption.TLSConfig"))
}
