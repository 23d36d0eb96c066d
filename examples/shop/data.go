package main

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// Data has the numbers of the shop. Reading one and writing it back is not atomic: only locks keep
// others out in between.
type Data interface {
	// Get returns a number, 0 if there is none.
	Get(ctx context.Context, key string) (int64, error)
	// Set writes a number.
	Set(ctx context.Context, key string, value int64) error
}

// redisData has the numbers in Redis, as the service in Java has.
type redisData struct{ redis rueidis.Client }

func (d redisData) Get(ctx context.Context, key string) (int64, error) {
	value, err := d.redis.Do(ctx, d.redis.B().Get().Key(key).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return value, err
}

func (d redisData) Set(ctx context.Context, key string, value int64) error {
	set := d.redis.B().Set().Key(key).Value(strconv.FormatInt(value, 10)).Build()
	return d.redis.Do(ctx, set).Error()
}
