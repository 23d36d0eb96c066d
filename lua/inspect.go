package lua

import (
	"context"
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

// State is what Redis holds about a lock at one moment.
type State struct {
	// Mode is "read" or "write" on a read-write lock, else "".
	Mode string
	// Holds are the owners that hold the lock; none when it is free. Their order means nothing.
	Holds []Hold
	// TTL is what is left of the lease: 0 when the lock is free, [NoExpiry] when it never expires.
	TTL time.Duration
	// Queue are the owners that wait for a fair lock, first come first.
	Queue []string
	// Token is the last one that a fenced lock has given; 0 if none.
	Token int64
}

// Hold is what one owner holds. A writer that reads has two.
type Hold struct {
	Owner string
	Count int
	Write bool // of a read-write lock
}

// Inspect reads a lock and changes nothing. It is for all kinds; of fair and fenced locks the
// others tell more.
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
				Class: Permanent,
				Message: "field " + strconv.Quote(
					fields[i],
				) + " of " + strconv.Quote(
					lock,
				) + " is not a hold count",
				Advice: "the key is a hash, but not a lock; choose another name",
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
