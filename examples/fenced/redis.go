package fenced

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// setFenced is a script, because Redis runs a script as one step.
var setFenced = rueidis.NewLuaScript(`
	if tonumber(redis.call('HGET', KEYS[1], 'token') or 0) > tonumber(ARGV[1]) then
		return 0
	end
	redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
	return 1`)

// set stores a value, unless Redis has a value with a larger token.
func set(ctx context.Context, redis rueidis.Client, key, value string, token int64) error {
	args := []string{strconv.FormatInt(token, 10), value}
	stored, err := setFenced.Exec(ctx, redis, []string{key}, args).AsBool()
	if err == nil && !stored {
		return errStale
	}
	return err
}
