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

// Renewal names a lock and the owner that is believed to hold it.
type Renewal struct {
	Lock  string
	Owner string // for a write lock the [WriteField] of the owner
}

// Renew gives every lock that its owner still holds a TTL of at least lease, in one command.
// held[i] reports whether the owner of renewals[i] holds the lock. On a cluster all locks must be
// in one slot. An error concerns the whole batch, some of which may have been renewed.
func Renew(
	ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Renewal,
) (held []bool, err error) {
	keys := make([]string, len(renewals))
	args := make([]string, 1, len(renewals)+1)
	args[0] = milliseconds(lease)
	for i, renewal := range renewals {
		keys[i] = renewal.Lock
		args = append(args, renewal.Owner)
	}
	return renewed(renew.run(ctx, c, keys, args), len(renewals))
}

// RenewReads is [Renew] for read locks.
func RenewReads(
	ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Renewal,
) (held []bool, err error) {
	keys := make([]string, 0, 2*len(renewals))
	args := make([]string, 1, len(renewals)+1)
	args[0] = milliseconds(lease)
	for _, renewal := range renewals {
		keys = append(keys, renewal.Lock, holdsKey(renewal.Lock, renewal.Owner)+":1")
		args = append(args, renewal.Owner)
	}
	return renewed(readRenew.run(ctx, c, keys, args), len(renewals))
}

func renewed(reply rueidis.RedisResult, renewals int) ([]bool, error) {
	replies, err := list(reply, renewals)
	if err != nil {
		return nil, err
	}
	held := make([]bool, renewals)
	for i, reply := range replies {
		if held[i], err = boolean(reply); err != nil {
			return nil, err
		}
	}
	return held, nil
}
