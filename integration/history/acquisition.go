package history

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Acquisition is one call of Lock or TryLock and its outcome. An Instant of 0 has not come.
type Acquisition struct {
	Process string
	Number  int
	Root    int // its own number, unless it is nested
	Locks   []Lock
	Wait    time.Duration
	Lease   time.Duration
	Fixed   bool // the lease is not renewed

	Asked    Instant
	Outcome  What    // Granted, Refused, Unknown or Failed; "" if the process was killed before
	Answered Instant // when that was known
	Owner    string
	Token    int64

	// Trusted is the last instant at which the holder found its hold valid: it was valid from
	// Answered until then.
	Trusted Instant
	// Promised is the latest deadline that the hold returned.
	Promised Instant
	Lost     Instant

	Releasing Instant
	// Release is Released, NotHeld or Unconfirmed; "" if it was not released, or the process was
	// killed before the reply.
	Release What
	Gone    Instant // when that was known

	Error string // the last one returned
}

// String returns the acquisition's name in a report.
func (a *Acquisition) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s#%d", a.Process, a.Number)
	if a.Nested() {
		fmt.Fprintf(&text, " (in #%d)", a.Root)
	}
	for _, lock := range a.Locks {
		fmt.Fprintf(&text, " %s %q", lock.Kind, lock.Name)
	}
	return text.String()
}

// Nested reports whether the owner of another acquisition made it.
func (a *Acquisition) Nested() bool { return a.Root != a.Number }

// Granted reports whether there was a hold.
func (a *Acquisition) Granted() bool { return a.Outcome == Granted }

// owner identifies an owner: nested acquisitions have that of the outermost.
type owner struct {
	process string
	root    int
}

func (a *Acquisition) owner() owner { return owner{a.Process, a.Root} }

func (o owner) compare(other owner) int {
	return cmp.Or(strings.Compare(o.process, other.process), cmp.Compare(o.root, other.root))
}

// add applies the next event of the acquisition.
func (a *Acquisition) add(e Event) error {
	if e.Error != "" {
		a.Error = e.Error
	}
	switch e.What {
	case Granted, Refused, Unknown, Failed:
		if a.Outcome != "" {
			return fmt.Errorf("%v: %s after %s", a, e.What, a.Outcome)
		}
		a.Outcome, a.Answered, a.Owner, a.Token = e.What, e.At, e.Owner, e.Token
		if a.Granted() {
			a.Trusted, a.Promised = e.At, e.Until
		}
		return nil
	case Valid, Lost, Releasing, Released, NotHeld, Unconfirmed:
		if !a.Granted() {
			return fmt.Errorf("%v: %s without a hold", a, e.What)
		}
	}
	switch e.What {
	case Valid:
		a.Trusted, a.Promised = max(a.Trusted, e.At), max(a.Promised, e.Until)
	case Lost:
		a.Lost = e.At
	case Releasing:
		a.Releasing = e.At
	case Released, NotHeld, Unconfirmed:
		if a.Releasing == 0 || a.Release != "" {
			return fmt.Errorf("%v: %s, but Unlock was not called just once", a, e.What)
		}
		a.Release, a.Gone = e.What, e.At
	default:
		return fmt.Errorf("%v: unknown event %q", a, e.What)
	}
	return nil
}
