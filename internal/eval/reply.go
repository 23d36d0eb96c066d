package eval

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
)

// Reply reads the reply of a script, one value after the other. It keeps the first error; what is
// read from then on means nothing. It is not safe for concurrent use.
type Reply struct {
	message rueidis.RedisMessage   // the whole reply
	values  []rueidis.RedisMessage // those of the list not read yet
	Err     error                  // the first one
}

// Size returns the number of values of a reply that is a list, and -1 for any other reply.
func (rp *Reply) Size() int {
	if !rp.message.IsArray() {
		return -1
	}
	values, _ := rp.message.ToArray() // it is one
	return len(values)
}

// IsNil reports whether the whole reply is nil, without an error.
func (rp *Reply) IsNil() bool { return rp.Err == nil && rp.message.IsNil() }

// next returns the next value of the list, or the whole reply if no list was entered.
func (rp *Reply) next() *rueidis.RedisMessage {
	value := &rp.message
	if len(rp.values) > 0 {
		value, rp.values = &rp.values[0], rp.values[1:]
	}
	return value
}

// Part returns the next value as a reply of its own.
func (rp *Reply) Part() Reply { return Reply{message: *rp.next(), Err: rp.Err} }

// List enters the next value, which must be a list of one of the given sizes, and returns its size.
func (rp *Reply) List(sizes ...int) int {
	values, err := rp.next().ToArray()
	rp.Keep(err)
	if !slices.Contains(sizes, len(values)) {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("%d values instead of %d", len(values), sizes[0])))
	}
	rp.values = values
	return len(values)
}

// The readers call methods of the value directly: a function value would allocate every reply.

// Integer reads an integer.
func (rp *Reply) Integer() int64 {
	n, err := rp.next().ToInt64()
	rp.Keep(err)
	return n
}

// Decimal reads a number that may be a string, because Lua's own numbers are exact only up to 2^53.
func (rp *Reply) Decimal() int64 {
	n, err := rp.next().AsInt64()
	rp.Keep(err)
	return n
}

// Text reads a text.
func (rp *Reply) Text() string {
	text, err := rp.next().ToString()
	rp.Keep(err)
	return text
}

// Texts reads a list of texts. A score may be a number: it is one in scripts on Dragonfly.
func (rp *Reply) Texts() []string {
	value := rp.next()
	texts, err := value.AsStrSlice()
	rp.Keep(err)
	elements, _ := value.ToArray() // an error would be the same one
	for i := range elements {
		if elements[i].IsInt64() {
			number, _ := elements[i].ToInt64() // it is one
			texts[i] = strconv.FormatInt(number, 10)
		}
	}
	return texts
}

// Boolean reads a value that must be 0 or 1.
func (rp *Reply) Boolean() bool {
	n := rp.Integer()
	if n != 0 && n != 1 {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("%d instead of 0 or 1", n)))
	}
	return n == 1
}

// Keep keeps an error, unless there was one before.
func (rp *Reply) Keep(err error) {
	if rp.Err == nil {
		rp.Err = rediserr.Classify(err)
	}
}
