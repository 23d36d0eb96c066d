package lua

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

var (
	renew     = load("renew.lua")
	readRenew = load("read_renew.lua")
)

// Claim names a lock and the owner that believes to hold it; for a write lock [WriteField] of the owner.
type Claim struct {
	Lock  string
	Owner string
}

// Renew gives every claimed lock that is still its owner's a TTL of at least lease, in one command. held[i] tells
// whether claims[i] was true. On a cluster all locks must be in one slot. An error is about the whole batch; some of
// it may have been renewed.
func Renew(ctx context.Context, c rueidis.CoreClient, lease time.Duration, claims []Claim) (held []bool, err error) {
	keys := make([]string, len(claims))
	args := make([]string, 1, len(claims)+1)
	args[0] = milliseconds(lease)
	for i, claim := range claims {
		keys[i] = claim.Lock
		args = append(args, claim.Owner)
	}
	return renewed(renew.run(ctx, c, keys, args), len(claims))
}

// RenewReads is [Renew] for read locks.
func RenewReads(ctx context.Context, c rueidis.CoreClient, lease time.Duration, claims []Claim) (held []bool, err error) {
	keys := make([]string, 0, 2*len(claims))
	args := make([]string, 1, len(claims)+1)
	args[0] = milliseconds(lease)
	for _, claim := range claims {
		keys = append(keys, claim.Lock, holdsKey(claim.Lock, claim.Owner)+":1")
		args = append(args, claim.Owner)
	}
	return renewed(readRenew.run(ctx, c, keys, args), len(claims))
}

func renewed(reply rueidis.RedisResult, claims int) ([]bool, error) {
	replies, err := list(reply, claims)
	if err != nil {
		return nil, err
	}
	held := make([]bool, claims)
	for i, reply := range replies {
		if held[i], err = boolean(reply); err != nil {
			return nil, err
		}
	}
	return held, nil
}
