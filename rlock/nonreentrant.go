package rlock

import (
	"context"
	"errors"
	"time"

	"holdfast/lua"
)

// ErrReentry reports that the context's owner holds the lock already, and that the lock is not
// re-entrant.
var ErrReentry = errors.New("the owner holds this lock, which is not re-entrant")

// NewNonReentrantLock returns the lock called name that an owner can hold only once: if the owner
// holds it already, an attempt returns [ErrReentry] at once, instead of adding a level. It is
// Redisson's non-reentrant lock, and excludes the other locks under its name. For impossible names
// see [Client.NewLock].
func (c *Client) NewNonReentrantLock(name string) *Lock {
	return c.newLock(name, &nonReentrantTraits, nonReentrant{newExclusive(c, name, "nonreentrant", false)})
}

var nonReentrantTraits = traits{family: "nonreentrant", handsOver: true, cleanups: 1,
	renewal: exclusiveRenewals, inspect: lua.Inspect}

// nonReentrant is the kind of a lock without levels. It uses the script of the plain lock: a second
// attempt of an owner is detected in this process, and a repeated request must find what it has
// acquired.
type nonReentrant struct{ exclusive }

func (k nonReentrant) reenter(context.Context, string, int, time.Duration) (bool, error) {
	return false, &lua.Error{
		Class:   lua.Permanent,
		Code:    "NON_REENTRANT_REACQUIRE",
		Message: ErrReentry.Error(),
		Advice:  "pass a context without this owner, or use Client.NewLock",
		Err:     ErrReentry,
	}
}
