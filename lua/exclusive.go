package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// The scripts of a release are looked up once.
var release, releaseOnly = scripts["release.lua"], scripts["release_only.lua"]

// Exclusive sends the commands of a plain or fenced lock. A single owner holds the lock at a time.
// A waiter may be registered, and a release then grants the lock to the waiter. Exclusive builds
// the keys of the commands once, and is safe for concurrent use.
type Exclusive struct {
	name, channel string
	fenced        bool
	acquire       *eval.Script

	acquires []string // the keys of acquire; the last one only with a registration
	releases []string // the keys of release; releaseOnly has only the first

	last atomic.Pointer[leaseText] // the lease that was asked for last
}

// leaseText is a lease and its text.
type leaseText struct {
	lease time.Duration
	text  string
}

// NewExclusive returns the commands of the lock with the given name.
func NewExclusive(name string, fenced bool) *Exclusive {
	waiters, token := wire.WaitersKey(name), wire.TokenKey(name)
	x := &Exclusive{name: name, channel: wire.Channel(name),
		acquire: scripts["acquire.lua"], acquires: []string{name, waiters},
		releases: []string{name, waiters}}
	if fenced {
		x.fenced, x.acquire = true, scripts["fenced_acquire.lua"]
		x.acquires, x.releases = []string{name, token, waiters}, []string{name, waiters, token}
	}
	return x
}

// Channel returns the channel for announcements of releases.
func (x *Exclusive) Channel() string { return x.channel }

// Registration returns the text to register an owner as a waiter. A grant lasts for lease.
func (x *Exclusive) Registration(owner string, lease time.Duration) string {
	kind := " p"
	if x.fenced {
		kind = " f"
	}
	return owner + " " + x.text(lease) + kind
}

// text returns the text of a lease. It caches the last one, because the lease seldom changes.
func (x *Exclusive) text(lease time.Duration) string {
	last := x.last.Load()
	if last == nil || last.lease != lease {
		last = &leaseText{lease, milliseconds(lease)}
		x.last.Store(last)
	}
	return last.text
}

// Acquire acquires the lock for owner, with a count of 1 and a TTL of at least lease. If another
// owner has the lock, Acquire returns that owner as the holder, and otherwise a nil holder. The
// fence of a fenced lock is larger than the fences of all earlier acquisitions of the same name. If
// a command that acquired the lock is repeated, the repetition returns the same fence.
//
// If another owner has the lock and registration is not "", Acquire registers owner as a waiter and
// changes nothing else. The ticket identifies the registration, and 0 means that there is none. A
// waiter stays registered until it gets the lock.
func (x *Exclusive) Acquire(
	ctx context.Context, c rueidis.CoreClient, owner string, lease time.Duration, registration string,
) (fence, ticket int64, holder *Holder, err error) {
	keys, args := x.acquires, []string{owner, x.text(lease), registration}
	if registration == "" {
		keys, args = keys[:len(keys)-1], args[:2]
	}
	rp := x.acquire.Run(ctx, c, keys, args...)
	switch {
	case !x.fenced && rp.IsNil(): // acquired
	case x.fenced && rp.Size() < 0:
		// After an error the owner has no use for the lock.
		fence = token(&rp, x.name, rediserr.ClassUnknown)
	case registration == "":
		holder, _ = refusal(&rp, 3)
	default:
		holder, ticket = refusal(&rp, 4)
	}
	return fence, ticket, holder, rp.Err
}

// HandOver says who may get a lock after the release of its last hold. Without Others, Successor
// and Withdrawn, the release is announced.
type HandOver struct {
	Channels wire.Channels // on which waiters listen
	// Others allows a grant to a waiter of another client. The server must count all listeners of a
	// channel in the reply to PUBLISH. A node of a cluster does that only for sharded channels.
	Others bool
	// Successor is the registration of the next owner in this process, or "". If another waiter gets
	// the lock, the successor stays registered.
	Successor      string
	SuccessorFirst bool        // Successor comes before all others
	Streak         wire.Streak // of the lock until this release
	Withdrawn      string      // a registration that its owner no longer wants; "" if none
}

// To is the owner of a lock after its release.
type To int

// The owners after a release.
const (
	Nobody    To = iota // the lock is free and its release was announced, or levels are left
	Successor           // the successor in this process
	Other               // a registered waiter, perhaps the successor
)

// Release sets the hold count of owner to count. If count is 0, owner loses the lock. Release then
// hands the lock over as h allows, or announces the release. If count is above 0, h has no effect.
func (x *Exclusive) Release(ctx context.Context, c rueidis.CoreClient, owner string, count int,
	h HandOver,
) (Released, error) {
	if count > 0 || !h.Others && h.Successor == "" && h.Withdrawn == "" {
		return released(releaseOnly.Run(ctx, c, x.releases[:1], owner, strconv.Itoa(count),
			x.channel, publish[h.Channels]))
	}
	// Arguments that equal the script's defaults are left out: each costs a fiftieth of a release.
	args := append(make([]string, 0, 9), owner, x.channel)
	usual := HandOver{Channels: h.Channels, Others: true}
	if h.Channels != wire.Classic || h != usual {
		args = append(args, publish[h.Channels], flag[h.Others])
	}
	if h != usual {
		args = append(args, strconv.Itoa(h.Streak.Count), strconv.FormatInt(h.Streak.Began, 10),
			h.Successor, flag[h.SuccessorFirst], h.Withdrawn)
	}
	return released(release.Run(ctx, c, x.releases, args...))
}

// ForceUnlock releases the lock of any holder, and announces the release if the lock was held.
func (x *Exclusive) ForceUnlock(ctx context.Context, c rueidis.CoreClient, channels wire.Channels,
) (Released, error) {
	return released(scripts["force_unlock.lua"].Run(ctx, c, x.releases[:1], x.channel, wire.Unlocked,
		publish[channels]))
}

// Reenter adds a nested hold. The count becomes count, and the TTL at least lease. If the owner
// does not hold the lock, Reenter returns false and changes nothing.
func Reenter(ctx context.Context, c rueidis.CoreClient, h Held, count int, lease time.Duration,
) (bool, error) {
	file, keys := "reenter.lua", []string{h.Lock}
	if h.Read {
		file, keys = "read_reenter.lua", append(keys, wire.HoldsKey(h.Lock, h.Owner))
	}
	rp := scripts[file].Run(ctx, c, keys, h.Owner, strconv.Itoa(count), milliseconds(lease))
	is := rp.Boolean()
	return is, rp.Err
}

// Attach gives the lock of one owner to another, with a count of 1 and a TTL of lease. Attach
// returns false if neither owner holds the lock.
func Attach(ctx context.Context, c rueidis.CoreClient, lock, from, to string, lease time.Duration,
) (bool, error) {
	rp := scripts["attach.lua"].Run(ctx, c, []string{lock}, from, to, milliseconds(lease))
	is := rp.Boolean()
	return is, rp.Err
}

// token reads the token of a fenced lock. class is that of the error for a text that is none. It
// adds advice to a refusal that concerns the counter.
func token(rp *eval.Reply, lock string, class rediserr.Class) int64 {
	token := rp.Decimal()
	var e *rediserr.Error
	var text *strconv.NumError
	switch {
	case !errors.As(rp.Err, &e):
		return token
	case errors.As(e, &text):
		e.Class = class
		e.Message = fmt.Sprintf("the token %q of %q is not a number", text.Num, lock)
	case e.Code != "WRONGTYPE" && !strings.Contains(e.Message, "not an integer") &&
		!strings.Contains(e.Message, "would overflow"):
		return 0
	}
	e.Advice = "something else writes to " + wire.TokenKey(lock) + "; use another name, or set " +
		"that key to a number that is larger than any token in use"
	return 0
}
