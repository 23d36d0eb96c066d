package lua

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/printable"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// reply reads the reply of a script, one value after the other. It keeps the first error; what is
// read from then on means nothing.
type reply struct {
	message rueidis.RedisMessage   // the whole reply
	values  []rueidis.RedisMessage // those of the list not read yet
	err     error
}

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
		rp.keep(rediserr.Unexpected(fmt.Errorf("%d values instead of %d", len(values), sizes[0])))
	}
	rp.values = values
	return len(values)
}

// The readers call methods of the value directly: a function value would allocate every reply.

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

func (rp *reply) text() string {
	text, err := rp.next().ToString()
	rp.keep(err)
	return text
}

// texts reads a list of texts. A score may be a number: it is one in scripts on Dragonfly.
func (rp *reply) texts() []string {
	value := rp.next()
	texts, err := value.AsStrSlice()
	rp.keep(err)
	elements, _ := value.ToArray() // an error would be the same one
	for i := range elements {
		if elements[i].IsInt64() {
			number, _ := elements[i].ToInt64() // it is one
			texts[i] = strconv.FormatInt(number, 10)
		}
	}
	return texts
}

// boolean reads a value that must be 0 or 1.
func (rp *reply) boolean() bool {
	n := rp.integer()
	if n != 0 && n != 1 {
		rp.keep(rediserr.Unexpected(fmt.Errorf("%d instead of 0 or 1", n)))
	}
	return n == 1
}

// keep keeps an error, unless there was one before.
func (rp *reply) keep(err error) {
	if rp.err == nil {
		rp.err = rediserr.Classify(err)
	}
}

// Holder describes the owner that is in the way of an acquisition.
type Holder struct {
	Owner string        // "<client id>:<number>"; "" when readers that waited have their turn
	TTL   time.Duration // the rest of its lease, or [wire.NoExpiry]
	Next  bool          // it does not hold the lock, but comes before the one that asked
	Nap   time.Duration // how long to wait at most before asking again, if that is not the TTL
	Clock time.Time     // of the server, when it replied for a fair lock; else zero
}

// refusal reads who is in the way of an acquisition, and with a size of 4 the number that follows.
// It returns nil if nobody is, or after an error.
func (rp *reply) refusal(size int) (holder *Holder, number int64) {
	if rp.isNil() {
		return nil, 0
	}
	rp.list(size)
	left, owner, nap := rp.integer(), rp.text(), rp.integer()
	if size > 3 {
		number = rp.decimal()
	}
	if rp.err != nil {
		return nil, 0
	}
	return &Holder{Owner: strings.TrimSuffix(owner, wire.WriteSuffix), TTL: wire.TTL(left),
		Next: left == wire.NoKey, Nap: time.Duration(max(0, nap)) * time.Millisecond}, number
}

// acquired reads the reply of a script that takes a lock. It returns nil if the lock was taken.
func acquired(rp reply) (*Holder, error) {
	holder, _ := rp.refusal(3)
	return holder, rp.err
}

// Released is the outcome of a release.
type Released struct {
	// Held reports whether there was something to release: the owner held the lock or, if the
	// release was for any owner, some owner did.
	Held bool
	// Refusal is the server's reason for not announcing that the lock was released; "" if it was
	// announced. It begins with the error code, such as NOPERM, on every version of the server.
	Refusal string
	Reading bool  // the owner gave back a write lock and has read holds left
	To      To    // the owner that has the lock now
	Fence   int64 // the fencing token of the successor, if it has the lock and the lock is fenced
	// Began is that of the [wire.Streak], if the successor has the lock because it could not be
	// granted to a waiter of another process.
	Began  int64
	Ticket int64 // of the successor, if it was registered
	// Classic reports that, with [wire.Both], other clients listened on the classic channel. Only
	// plain and fenced locks report it, once they are free.
	Classic bool
}

// outcomes has the outcome for each status that the scripts return for a release.
var outcomes = map[int64]Released{
	-1: {},                          // the owner did not hold the lock
	0:  {Held: true},                // levels are left
	1:  {Held: true},                // the lock is free
	2:  {Held: true, Reading: true}, // the owner has read holds left
	3:  {Held: true, To: Successor}, // the successor has the lock
	4:  {Held: true, To: Other},     // a waiter has it, by its registration
}

// released reads the reply for one release: a status, or a list of it, a refusal and, for a lock
// that is handed over, a number and perhaps the beginning of the streak.
func released(rp reply) (Released, error) {
	size := 1
	if rp.message.IsArray() {
		size = rp.list(2, 3, 4)
	}
	status := rp.integer()
	out, known := outcomes[status]
	if !known || size > 3 && out.To != Successor {
		rp.keep(rediserr.Unexpected(fmt.Errorf("status %d in %d values", status, size)))
	}
	if size > 1 {
		out.Refusal = printable.Short(rediserr.WithCode(rp.text()))
	}
	switch {
	case size > 2 && out.To == Successor:
		out.Fence = rp.decimal()
	case size > 2 && out.To == Other:
		out.Ticket = rp.decimal()
	case size > 2:
		out.Classic = rp.integer() == 1
	}
	if size > 3 {
		out.Began = rp.integer()
	}
	if rp.err != nil {
		out = Released{}
	}
	return out, rp.err
}
