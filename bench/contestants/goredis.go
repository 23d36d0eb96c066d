package contestants

import "github.com/redis/go-redis/v9"

// openGoRedis opens a go-redis client with its defaults. A connection for each of 64 goroutines,
// instead of ten per core, was slower.
func openGoRedis(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address})
}
