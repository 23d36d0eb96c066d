package lua

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/eval"
	"holdfast/internal/printable"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// Holder is the owner that prevents an acquisition.
type Holder struct {
	Owner string        // "<client id>:<number>"; "" if readers that have waited come first
	TTL   time.Duration // the rest of its lease, or [wire.NoExpiry]
	Next  bool          // it does not hold the lock, but comes before the caller in the queue
	Sleep time.Duration // the longest time to wait before the next request; 0 means the TTL
	Clock time.Time     // the time of the server at its reply about a fair lock; else zero
}

// refusal reads who is in the way of an acquisition, and with a size of 4 the number that follows.
// It returns nil if nobody is, or after an error.
func refusal(rp *eval.Reply, size int) (holder *Holder, number int64) {
	if rp.IsNil() {
		return nil, 0
	}
	rp.List(size)
	left, owner, sleep := rp.Integer(), rp.Text(), rp.Integer()
	if size > 3 {
		number = rp.Decimal()
	}
	if rp.Err != nil {
		return nil, 0
	}
	return &Holder{Owner: strings.TrimSuffix(owner, wire.WriteSuffix), TTL: wire.TTL(left),
		Next: left == wire.NoKey, Sleep: time.Duration(max(0, sleep)) * time.Millisecond}, number
}

// acquired reads the reply of a script that takes a lock. It returns nil if the lock was taken.
func acquired(rp eval.Reply) (*Holder, error) {
	holder, _ := refusal(&rp, 3)
	return holder, rp.Err
}

// Released is the outcome of a release.
type Released struct {
	// Held reports whether the owner held the lock, or for a release of any owner, whether the lock
	// was held.
	Held bool
	// Refusal is the error with which the server rejected the announcement of the release, or "". It
	// begins with the error code, such as NOPERM, on every version of the server.
	Refusal string
	Reading bool  // the owner gave back a write lock and has read holds left
	To      To    // the owner that has the lock now
	Fence   int64 // the fencing token of the successor, if it has the lock and the lock is fenced
	// Began belongs to the [wire.Streak] of the lock. It is set if the successor has the lock because
	// no waiter of another process could get it.
	Began  int64
	Ticket int64 // of the successor, if it was registered
	// Classic reports, with [wire.Both], that other clients listened on the classic channel. Only the
	// last release of a plain or fenced lock reports Classic.
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
func released(rp eval.Reply) (Released, error) {
	size := 1
	if rp.Size() >= 0 {
		size = rp.List(2, 3, 4)
	}
	status := rp.Integer()
	out, known := outcomes[status]
	if !known || size > 3 && out.To != Successor {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("status %d in %d values", status, size)))
	}
	if size > 1 {
		out.Refusal = printable.Short(rediserr.WithCode(rp.Text()))
	}
	switch {
	case size > 2 && out.To == Successor:
		out.Fence = rp.Decimal()
	case size > 2 && out.To == Other:
		out.Ticket = rp.Decimal()
	case size > 2:
		out.Classic = rp.Integer() == 1
	}
	if size > 3 {
		out.Began = rp.Integer()
	}
	if rp.Err != nil {
		out = Released{}
	}
	return out, rp.Err
}
