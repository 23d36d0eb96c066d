package lua

import (
	"fmt"

	"github.com/redis/rueidis"
)

// list reads a reply that must be a list of n values.
func list(reply rueidis.RedisResult, n int) ([]rueidis.RedisMessage, error) {
	values, err := reply.ToArray()
	if err != nil {
		return nil, Classify(err)
	}
	return values, sized(values, n)
}

// sized returns an error unless a list has n values.
func sized(values []rueidis.RedisMessage, n int) error {
	if len(values) != n {
		return unexpected(fmt.Sprintf("%d values instead of %d", len(values), n))
	}
	return nil
}

// boolean reads a value that must be 0 or 1.
func boolean(m rueidis.RedisMessage) (bool, error) {
	n, err := integer(m)
	if err == nil && n != 0 && n != 1 {
		return false, unexpected(fmt.Sprintf("%d instead of 0 or 1", n))
	}
	return n == 1, err
}

func integer(m rueidis.RedisMessage) (int64, error) {
	n, err := m.ToInt64()
	if err != nil {
		return 0, Classify(err)
	}
	return n, nil
}

// decimal reads a number that may be a string, because Lua's own numbers are exact only up to 2^53.
func decimal(m rueidis.RedisMessage) (int64, error) {
	n, err := m.AsInt64()
	if err != nil {
		e := unexpected(err.Error())
		e.Err = err
		return 0, e
	}
	return n, nil
}

func text(m rueidis.RedisMessage) (string, error) {
	s, err := m.ToString()
	if err != nil {
		return "", Classify(err)
	}
	return s, nil
}

// unexpected returns the error for a reply that no script of ours gives. The script did run, so its
// outcome is unknown.
func unexpected(what string) *Error {
	return &Error{Class: Unknown, Message: "unexpected reply: " + what,
		Advice: "something between this client and Redis, or a server that is not Redis, " +
			"changes replies"}
}
