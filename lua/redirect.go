package lua

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// Redirection is where a node of a cluster sends those who ask it for a key that another node has.
type Redirection struct {
	Node string
	// Asking tells that the slot is moving. The other node takes the next command only, and only
	// after [Ask].
	Asking bool
}

// Redirected tells whether a command failed because another node has its key. rueidis follows by
// itself, but not on a connection that belongs to one caller.
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

// Ask announces a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c rueidis.CoreClient) error {
	return Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}
