package lua

import (
	"fmt"
	"slices"

	"github.com/redis/rueidis"
)

// reply reads the reply of a script, one value after the other. It keeps the first error; what is
// read from then on means nothing.
type reply struct {
	message rueidis.RedisMessage   // the whole reply
	values  []rueidis.RedisMessage // those of the list not read yet
	err     error
}

// isNil reports whether the reply is nil.
func (rp *reply) isNil() bool { return rp.err == nil && rp.message.IsNil() }

// next returns the next value of the list, or the whole reply if no list was entered.
func (rp *reply) next() *rueidis.RedisMessage {
	value := &rp.message
	if len(rp.values) > 0 {
		value, rp.values = &rp.values[0], rp.values[1:]
	}
	return value
}

// part returns the next value as a reply of its own.
func (rp *reply) part() reply { return reply{message: *rp.next(), err: rp.err} }

// list enters the next value, which must be a list of one of the given sizes, and returns its size.
func (rp *reply) list(sizes ...int) int {
	values, err := rp.next().ToArray()
	rp.keep(err)
	if !slices.Contains(sizes, len(values)) {
		rp.unexpected(fmt.Sprintf("%d values instead of %d", len(values), sizes[0]))
	}
	rp.values = values
	return len(values)
}

func (rp *reply) integer() int64 {
	n, err := rp.next().ToInt64()
	rp.keep(err)
	return n
}

// decimal reads a number that may be a string, because Lua's own numbers are exact only up to 2^53.
func (rp *reply) decimal() int64 {
	n, err := rp.next().AsInt64()
	rp.keep(err)
	return n
}

// boolean reads a value that must be 0 or 1.
func (rp *reply) boolean() bool {
	n := rp.integer()
	if n != 0 && n != 1 {
		rp.unexpected(fmt.Sprintf("%d instead of 0 or 1", n))
	}
	return n == 1
}

func (rp *reply) text() string {
	text, err := rp.next().ToString()
	rp.keep(err)
	return text
}

func (rp *reply) texts() []string {
	texts, err := rp.next().AsStrSlice()
	rp.keep(err)
	return texts
}

// keep keeps the error of rueidis for a value, unless there was one before.
func (rp *reply) keep(err error) {
	if rp.err == nil {
		rp.err = Classify(err)
	}
}

// unexpected keeps the error for a value that no script of ours gives.
func (rp *reply) unexpected(what string) {
	if rp.err == nil {
		rp.err = unexpected(what, nil)
	}
}

// unexpected returns the error for a reply that no script of ours gives. The script did run, so its
// outcome is unknown.
func unexpected(what string, cause error) *Error {
	return &Error{Class: Unknown, Message: "unexpected reply: " + what, Err: cause,
		Advice: "something between this client and Redis, or a server that is not Redis, " +
			"changes replies"}
}
