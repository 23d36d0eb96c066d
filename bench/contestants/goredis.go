package contestants

import (
	"github.com/redis/go-redis/v9"

	"holdfast/bench/contest"
)

// openGoRedis opens a go-redis client. By default it has ten connections per core. A connection for
// each of 64 goroutines was better only over a slow network.
func openGoRedis(address string, s contest.Setup) *redis.Client {
	o := &redis.Options{Addr: address}
	if s.Far && s.Goroutines > 1 {
		o.PoolSize = s.Goroutines
	}
	return redis.NewClient(o)
}
