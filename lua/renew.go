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
	return renewed(ctx, c, renew, lease, renewals)
}

// RenewReads is [Renew] for read locks.
func RenewReads(
	ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Renewal,
) (held []bool, err error) {
	return renewed(ctx, c, readRenew, lease, renewals)
}

func renewed(
	ctx context.Context, c rueidis.CoreClient, s *script, lease time.Duration, renewals []Renewal,
) ([]bool, error) {
	keys := make([]string, 0, 2*len(renewals))
	args := append(make([]string, 0, 1+len(renewals)), milliseconds(lease))
	for _, renewal := range renewals {
		keys = append(keys, renewal.Lock)
		if s == readRenew {
			keys = append(keys, holdsKey(renewal.Lock, renewal.Owner)+":1")
		}
		args = append(args, renewal.Owner)
	}
	rp := s.run(ctx, c, keys, args)
	rp.list(len(renewals))
	held := make([]bool, len(renewals))
	for i := range held {
		held[i] = rp.boolean()
	}
	if rp.err != nil {
		return nil, rp.err
	}
	return held, nil
}
