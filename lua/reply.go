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

// Holder describes the owner that prevented an acquisition, and when to ask again. This owner is
// the holder of the lock or, if Next is set, a waiter that comes first.
type Holder struct {
	// Owner is the name of the owner. It is "" if no particular owner prevented the acquisition, for
	// example during the turn of readers.
	Owner string
	// TTL is the rest of the lease, or [wire.NoExpiry]. It is 0 if Next is set.
	TTL time.Duration
	// Next reports that the owner does not hold the lock but comes before the caller. The owner is
	// the head of the queue of a fair lock, or a waiting writer that has precedence.
	Next bool
	// Sleep is how long the caller may sleep before it asks again. 0 means until the lease ends.
	Sleep time.Duration
	// Clock is the time of the server at its reply. Only [Fair.Acquire] sets Clock.
	Clock time.Time
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
	// Held reports whether the owner held the lock before the release. For ForceUnlock, Held reports
	// whether any owner held the lock.
	Held bool
	// Refusal is the error with which the server rejected the message to the waiters, or "". The lock
	// was released all the same, and the waiters notice the release when they next ask. The text
	// begins with the error code, such as NOPERM, on every version of the server.
	Refusal string
	// Reading reports that the owner released a write lock and is a reader now.
	Reading bool
	// To says which waiter got the lock.
	To To
	// Fence is the fence of the successor, if the lock is fenced and To is Successor.
	Fence int64
	// Began is the new Began of the [wire.Streak], if To is Successor without SuccessorFirst. With 0,
	// the old value still applies.
	Began int64
	// Ticket is the ticket of the successor, if a registered waiter got the lock instead and Release
	// registered the successor. Otherwise Ticket is 0.
	Ticket int64
	// Classic reports that a client listened only on the classic channel. Classic is set only with
	// [wire.Both], and only by the release of the last hold of a plain or fenced lock.
	Classic bool
}

// outcomes has the outcome for each status that the scripts return for a release.
var outcomes = map[int64]Released{
	-1: {},                          // the owner did not hold the lock
	0:  {Held: true},                // nested holds are left
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
