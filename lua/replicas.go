package lua

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

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
