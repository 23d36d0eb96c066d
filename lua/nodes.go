package lua

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// Redirected reports whether a command failed because another node of the cluster has its key, and
// which. If asking, the slot is moving, and that node accepts only the next command, and only after
// [Ask]. rueidis follows redirections by itself, but not on a dedicated connection.
func Redirected(err error) (node string, asking, ok bool) {
	var refusal *rueidis.RedisError
	if !errors.As(err, &refusal) {
		return "", false, false
	}
	if node, asking = refusal.IsAsk(); asking {
		return node, true, true
	}
	node, ok = refusal.IsMoved()
	return node, false, ok
}

// Ask sends ASKING, which must precede a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c rueidis.CoreClient) error {
	return Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}

// Acknowledged blocks until the given number of replicas have everything that was written through
// c, a dedicated connection, but for at most timeout. It returns how many have it by then.
func Acknowledged(
	ctx context.Context, c rueidis.CoreClient, replicas int, timeout time.Duration,
) (int, error) {
	wait := c.B().Wait().Numreplicas(int64(replicas)).Timeout(timeout.Milliseconds()).Build()
	n, err := c.Do(ctx, wait).ToInt64()
	if err != nil {
		return 0, Classify(err)
	}
	return int(n), nil
}
