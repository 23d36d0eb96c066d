package contestants

import (
	"github.com/redis/go-redis/v9"

	"holdfast/bench/contest"
)

// openGoRedis opens a go-redis client. By default it has ten connections per core. A connection for
// each of 64 goroutines was better only over a slow network.
func openGoRedis(address string, s contest.Setup) (redis.UniversalClient, error) {
	o := &redis.Options{Addr: address}
	if s.Far && s.Goroutines > 1 {
		o.PoolSize = s.Goroutines
	}
	client := redis.NewClient(o)
	if !s.Batching {
		return client, nil
	}
	pipeliner, err := client.AutoPipeline()
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return autoPipelined{pipeliner, client}, nil
}

// autoPipelining is a contestant on go-redis that sends all commands through AutoPipeline.
func autoPipelining(c contest.Contestant) contest.Contestant {
	return batching(c, "go-redis's AutoPipeline, with its defaults; otherwise as without")
}

// autoPipelined sends all commands through AutoPipeline.
type autoPipelined struct {
	redis.UniversalClient
	client *redis.Client
}

// Close closes the pipeliner with its client.
func (a autoPipelined) Close() error { return a.client.Close() }
