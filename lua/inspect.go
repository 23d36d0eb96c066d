package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// State is the state of a lock in Redis at a single moment.
type State struct {
	// Mode is "read" or "write" for a read-write lock that is not free, and otherwise "".
	Mode string
	// Holds has the holders with their hold counts, in no particular order. A free lock has none.
	Holds []Hold
	// TTL is the rest of the lease. It is 0 if the lock is free, and [wire.NoExpiry] if the lock
	// never expires.
	TTL time.Duration
	// Queue has the owners in the queue of a fair lock, head first. Only [InspectFair] sets Queue.
	Queue []string
	// Fence is the latest fence of a fenced lock, or 0 before the first acquisition. Only
	// [InspectFenced] sets Fence.
	Fence int64
}

// Hold is the entry of an owner in the hash of a lock, with the hold count. In a read-write lock, a
// writer that also reads has two entries.
type Hold struct {
	Owner string
	Count int
	// Write reports whether these are holds of a write lock.
	Write bool
}

// Inspect returns the state of a lock of any kind, without a queue and fence. Inspect changes
// nothing. If the key is a hash but not a lock, Inspect returns an error.
func Inspect(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	rp := scripts["inspect.lua"].Run(ctx, c, []string{lock})
	s := state(&rp, 2, lock)
	return s, rp.Err
}

// InspectFair is like [Inspect], and adds the first 10,000 owners in the queue of a fair lock.
func InspectFair(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	rp := scripts["fair_inspect.lua"].Run(ctx, c, []string{lock, wire.QueueKey(lock)})
	s := state(&rp, 3, lock)
	s.Queue = rp.Texts()
	return s, rp.Err
}

// InspectFenced is like [Inspect], and adds the latest fence of a fenced lock.
func InspectFenced(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	rp := scripts["fenced_inspect.lua"].Run(ctx, c, []string{lock, wire.TokenKey(lock)})
	s := state(&rp, 3, lock)
	s.Fence = token(&rp, lock, rediserr.ClassPermanent)
	return s, rp.Err
}

// state enters a list of the given size, and reads the TTL and the hash of a lock.
func state(rp *eval.Reply, size int, lock string) (s State) {
	rp.List(size)
	s.TTL = wire.TTL(rp.Integer())
	fields := rp.Texts()
	if len(fields)%2 != 0 {
		rp.Keep(rediserr.Unexpected(errors.New("a field without a value")))
	}
	for i := 0; i < len(fields) && rp.Err == nil; i += 2 {
		if fields[i] == "mode" {
			s.Mode = fields[i+1]
			continue
		}
		count, err := strconv.Atoi(fields[i+1])
		if err != nil {
			rp.Err = &rediserr.Error{Class: rediserr.ClassPermanent,
				Message: fmt.Sprintf("field %q of %q is not a hold count", fields[i], lock),
				Advice:  "the key is a hash, but not a lock; use another name"}
		}
		owner, write := strings.CutSuffix(fields[i], wire.WriteSuffix)
		s.Holds = append(s.Holds, Hold{Owner: owner, Count: count, Write: write})
	}
	return s
}
