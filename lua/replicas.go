package lua

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// Acknowledged waits until as many replicas have everything that was written through c, a
// connection of its own, and returns how many have it by then; the server waits for at most
// timeout.
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
