package lua

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// Redirection is the reply of a cluster node to a command for a key that another node has.
type Redirection struct {
	Node string
	// Asking reports whether the slot is moving. The other node then accepts only the next command,
	// and only after [Ask].
	Asking bool
}

// Redirected reports whether a command failed because another node has its key, and which node.
// rueidis follows redirections by itself, but not on a dedicated connection.
func Redirected(err error) (to Redirection, ok bool) {
	var refusal *rueidis.RedisError
	if !errors.As(err, &refusal) {
		return Redirection{}, false
	}
	if node, asking := refusal.IsAsk(); asking {
		return Redirection{Node: node, Asking: true}, true
	}
	node, ok := refusal.IsMoved()
	return Redirection{Node: node}, ok
}

// Ask sends ASKING, which must precede a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c rueidis.CoreClient) error {
	return Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}
