package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var inspect = load("inspect.lua")

// State is what Redis holds about a lock at one moment.
type State struct {
	// Mode is "read" or "write" on a read-write lock, else "".
	Mode string
	// Counts has the hold count of each owner. It is empty when the lock is free.
	Counts map[string]int
	// TTL is what is left of the lease: 0 when the lock is free, [NoExpiry] when it never expires.
	TTL time.Duration
}

// Inspect reads a lock and changes nothing.
func Inspect(ctx context.Context, c rueidis.Client, lock string) (State, error) {
	values, err := list(inspect.run(ctx, c, []string{lock}, nil), 2)
	if err != nil {
		return State{}, err
	}
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
	state := State{Counts: make(map[string]int, len(fields)/2)}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "mode" {
			state.Mode = fields[i+1]
			continue
		}
		count, err := strconv.Atoi(fields[i+1])
		if err != nil {
			return State{}, &Error{
				Class:   Permanent,
				Message: "field " + strconv.Quote(fields[i]) + " of " + strconv.Quote(lock) + " is not a hold count",
				Advice:  "the key is a hash, but not a lock; choose another name",
			}
		}
		state.Counts[fields[i]] = count
	}
	const free = -2
	if left != free {
		state.TTL = ttl(left)
	}
	return state, nil
}
