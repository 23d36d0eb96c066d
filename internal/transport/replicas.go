package transport

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
)

// Ask sends ASKING, which must precede a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c rueidis.CoreClient) error {
	return rediserr.Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}

// Acknowledged blocks until the given number of replicas have everything that was written through
// c, a dedicated connection, but for at most timeout. Acknowledged returns how many replicas have
// it by then.
func Acknowledged(ctx context.Context, c rueidis.CoreClient, replicas int, timeout time.Duration,
) (int, error) {
	wait := c.B().Wait().Numreplicas(int64(replicas)).Timeout(timeout.Milliseconds()).Build()
	n, err := c.Do(ctx, wait).ToInt64()
	return int(n), rediserr.Classify(err)
}

// Alone reports whether c, a dedicated connection, leads to a master without a replica that could
// acknowledge a write. A replica that still copies the master's data cannot acknowledge.
func Alone(ctx context.Context, c rueidis.CoreClient) (bool, error) {
	said, err := c.Do(ctx, c.B().Info().Section("replication").Build()).ToString()
	if err != nil {
		return false, rediserr.Classify(err)
	}
	for line := range strings.Lines(said) {
		_, state, stated := strings.Cut(line, ",state=")
		ready := !stated || strings.HasPrefix(state, "online,")
		if replicaLine.MatchString(line) && ready {
			return false, nil
		}
	}
	return strings.Contains(said, "role:master\r\n"), nil
}

// replicaLine matches a line of INFO about a replica.
var replicaLine = regexp.MustCompile(`^slave\d+:`)
