package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	inspect       = load("inspect.lua")
	fairInspect   = load("fair_inspect.lua")
	fencedInspect = load("fenced_inspect.lua")
)

// State is the state of a lock in Redis at one moment.
type State struct {
	// Mode is "read" or "write" on a read-write lock, else "".
	Mode string
	// Holds has the owners that hold the lock, in no particular order. It is empty when it is free.
	Holds []Hold
	// TTL is the rest of the lease: 0 when the lock is free, [NoExpiry] when it never expires.
	TTL time.Duration
	// Queue has the owners that wait for a fair lock, head first.
	Queue []string
	// Token is the last token that a fenced lock has given; 0 if none.
	Token int64
}

// Hold is the hold of one owner. A writer that reads has two.
type Hold struct {
	Owner string
	Count int
	Write bool // of a read-write lock
}

// Inspect reads a lock of any kind and changes nothing. [InspectFair] and [InspectFenced] return
// more.
func Inspect(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	values, err := list(inspect.run(ctx, c, []string{lock}, nil), 2)
	if err != nil {
		return State{}, err
	}
	return state(lock, values)
}

// InspectFair is [Inspect] for a fair lock, with its queue.
func InspectFair(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	values, err := list(fairInspect.run(ctx, c, []string{lock, QueueKey(lock)}, nil), 3)
	if err != nil {
		return State{}, err
	}
	s, err := state(lock, values)
	if err != nil {
		return State{}, err
	}
	if s.Queue, err = values[2].AsStrSlice(); err != nil {
		return State{}, Classify(err)
	}
	return s, nil
}

// InspectFenced is [Inspect] for a fenced lock, with its last token.
func InspectFenced(ctx context.Context, c rueidis.CoreClient, lock string) (State, error) {
	values, err := list(fencedInspect.run(ctx, c, []string{lock, tokenKey(lock)}, nil), 3)
	if err != nil {
		return State{}, miscounted(lock, err)
	}
	s, err := state(lock, values)
	if err != nil {
		return State{}, err
	}
	token, err := text(values[2])
	if err == nil && token != "" {
		if s.Token, err = strconv.ParseInt(token, 10, 64); err != nil {
			err = noNumber(lock, token)
		}
	}
	return s, err
}

// state reads the TTL and the hash of a lock.
func state(lock string, values []rueidis.RedisMessage) (State, error) {
	left, err := integer(values[0])
	if err != nil {
		return State{}, err
	}
	fields, err := values[1].AsStrSlice()
	if err != nil {
		return State{}, Classify(err)
	}
	if len(fields)%2 != 0 {
		return State{}, unexpected("a field without a value")
	}
	var s State
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "mode" {
			s.Mode = fields[i+1]
			continue
		}
		count, err := strconv.Atoi(fields[i+1])
		if err != nil {
			return State{}, &Error{
				Class:   Permanent,
				Message: fmt.Sprintf("field %q of %q is not a hold count", fields[i], lock),
				Advice:  "the key is a hash, but not a lock; choose another name",
			}
		}
		owner, write := strings.CutSuffix(fields[i], writeSuffix)
		s.Holds = append(s.Holds, Hold{Owner: owner, Count: count, Write: write})
	}
	if left != free {
		s.TTL = ttl(left)
	}
	return s, nil
}
