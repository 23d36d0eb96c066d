package locks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/identity"
	"holdfast/internal/printable"
)

// Others than programs look at JSON, too.
func TestJSONIsSafeToPrint(t *testing.T) {
	t.Parallel()
	const owner = "\u202e\u009b2J\x7f:1"
	client := locks.Client{Identity: identity.Identity{Host: owner, Label: owner}}
	document, err := json.Marshal(locks.Lock{Name: owner,
		Holders: []locks.Holder{{Owner: owner, Client: client}}})
	require.NoError(t, err)
	require.Equal(t, printable.Text(string(document)), string(document))
	var read struct{ Name string }
	require.NoError(t, json.Unmarshal(document, &read))
	require.Equal(t, owner, read.Name)
}
