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

// Exclusive sends the commands of one plain or fenced lock, which has a single holder at a time.
// The methods are safe for concurrent use. Keep the Exclusive of a lock, because each new Exclusive
// builds the names of the keys again.
type Exclusive struct {
	name, channel string
	fenced        bool
	acquire       *eval.Script

	acquires []string // the keys of acquire; the last one only with a registration
	releases []string // the keys of release; releaseOnly has only the first

	leases, grants leaseTexts // of Acquire, and of Registration
}

// leaseTexts caches the text of the latest lease, because a lease seldom changes.
type leaseTexts struct{ last atomic.Pointer[leaseText] }

// leaseText is a lease and its text.
type leaseText struct {
	lease time.Duration
	text  string
}

// NewExclusive returns the commands of the fenced lock with the given name if fenced is true, and
// otherwise of the plain lock. NewExclusive sends nothing.
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

// Channel returns the name of the channel on which releases are announced.
func (x *Exclusive) Channel() string { return x.channel }

// Registration returns the registration of an owner, for [Exclusive.Acquire] or a [HandOver]. After
// a hand-over to this registration, the owner holds the lock for lease. Registration sends nothing.
func (x *Exclusive) Registration(owner string, lease time.Duration) string {
	kind := " plain"
	if x.fenced {
		kind = " fenced"
	}
	return owner + " " + x.grants.of(lease) + kind
}

// of returns the text of a lease.
func (t *leaseTexts) of(lease time.Duration) string {
	last := t.last.Load()
	if last == nil || last.lease != lease {
		last = &leaseText{lease, milliseconds(lease)}
		t.last.Store(last)
	}
	return last.text
}

// Acquire acquires the lock for owner, and returns a nil holder on success. The hold count is then
// 1, and the lock lasts for at least lease. The fence of a fenced lock is larger than the fences of
// all earlier acquisitions, and the fence of a plain lock is 0. Acquire also succeeds if owner is
// the holder already, for example because the reply to an earlier command was lost. In this case
// the fence remains the same, and the lease is not shortened.
//
// If another owner holds the lock, Acquire returns the holder and does not change the lock. With a
// registration, which [Exclusive.Registration] builds, Acquire also registers owner as a waiter and
// returns the ticket. If the same registration exists already, its ticket remains the same. With an
// empty registration, the ticket is 0.
//
// A registration lasts until its owner gets the lock, or [HandOver].Withdrawn removes it. A release
// also removes the registration of a waiter whose client no longer listens. All registrations of
// the lock expire together, once no waiter has asked with a registration for 15 s ([LongestSleep]
// times three), and no release has registered its successor in this time.
func (x *Exclusive) Acquire(
	ctx context.Context, c rueidis.CoreClient, owner string, lease time.Duration, registration string,
) (fence, ticket int64, holder *Holder, err error) {
	keys, args := x.acquires, []string{owner, x.leases.of(lease), registration}
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

// HandOver says to whom [Exclusive.Release] may hand the lock over after the last hold. The first
// of these waiters gets the lock:
//
//   - The successor, if SuccessorFirst is set.
//   - The registered waiter with the lowest ticket, if Others is set. Release skips waiters whose
//     client no longer listens.
//   - The successor, if Others is set and no registered waiter is left.
//
// If no waiter gets the lock, Release announces it. So the zero HandOver makes Release announce the
// lock.
//
// The second and third rule do not apply if a client waits that does not register, such as a client
// of Redisson, or if the release is due for an announcement. The package documentation says when a
// release is due.
type HandOver struct {
	// Channels selects the kind of channels on which waiters listen.
	Channels wire.Channels
	// Others allows a hand-over to a registered waiter of any client. Release then has to count the
	// listeners of a channel, so set Others only if the server knows all of them. A node of a cluster
	// knows them only for sharded channels.
	Others bool
	// Successor is the [Exclusive.Registration] of the successor, or "" if no waiter of this client
	// is next. Successor has an effect only with Others or SuccessorFirst. If another registered
	// waiter gets the lock, Release registers the successor.
	Successor string
	// SuccessorFirst makes Successor come before all registered waiters.
	SuccessorFirst bool
	// Streak is the streak before this release, and depends on how the holder got the lock:
	//
	//   - As a free lock: zero.
	//   - By a grant: the Streak of the [wire.Grant].
	//   - As the successor, with SuccessorFirst: the Streak passed to that release, unchanged.
	//   - As the successor, without SuccessorFirst: the Streak passed to that release, with 1 added to
	//     Count, and with Began set to [Released].Began unless Released.Began is 0.
	Streak wire.Streak
	// Withdrawn is a registration that Release removes, because the owner no longer waits, or "".
	Withdrawn string
}

// To says which waiter got the lock in a release.
type To int

// The values of To.
const (
	// Nobody means that no waiter got the lock. Either the lock is free and was announced, or the
	// release did not change the holder.
	Nobody To = iota
	// Successor means that the successor got the lock. The reply is its acquisition, without a grant.
	Successor
	// Other means that a registered waiter got the lock, and receives a grant. The waiter can be the
	// successor, if the successor was registered before.
	Other
)

// Release sets the hold count of owner to count. If count is above 0, owner keeps the lock, and h
// has no effect. If count is 0, owner loses the lock, however many holds it had. Release then hands
// the lock over as h allows, or announces the lock. [Released].To reports which waiter got the
// lock. If owner did not hold the lock, the lock does not change, and [Released].Held is false.
func (x *Exclusive) Release(ctx context.Context, c rueidis.CoreClient, owner string, count int,
	h HandOver,
) (Released, error) {
	if count > 0 || !h.Others && h.Successor == "" && h.Withdrawn == "" {
		return released(releaseOnly.Run(ctx, c, x.releases[:1], owner, strconv.Itoa(count),
			x.channel, publish[h.Channels]))
	}
	// Arguments that equal the script's defaults are left out: each costs a fiftieth of a release.
	args := append(make([]string, 0, 9), owner, x.channel)
	names := h.Successor != "" || h.Withdrawn != ""
	special := names || h.Channels != wire.Classic || !h.Others
	if special || h.Streak != (wire.Streak{}) {
		args = append(args, strconv.Itoa(h.Streak.Count+1), strconv.FormatInt(h.Streak.Began, 10))
	}
	if special {
		args = append(args, publish[h.Channels], flag[h.Others])
	}
	if names {
		args = append(args, h.Successor, flag[h.SuccessorFirst], h.Withdrawn)
	}
	return released(release.Run(ctx, c, x.releases, args...))
}

// ForceUnlock releases all holds of the holder, whoever it is, and announces the lock on the
// selected kind of channels. If the lock was free, ForceUnlock changes nothing, and [Released].Held
// is false.
func (x *Exclusive) ForceUnlock(ctx context.Context, c rueidis.CoreClient, channels wire.Channels,
) (Released, error) {
	return released(scripts["force_unlock.lua"].Run(ctx, c, x.releases[:1], x.channel, wire.Unlocked,
		publish[channels]))
}

// Reenter adds a nested hold for an owner that holds the lock, and returns true. The hold count
// becomes count, and the lock lasts for at least lease. If the owner does not hold the lock,
// Reenter returns false and changes nothing. Reenter never acquires a free lock, because an owner
// that has lost the lock must learn of the loss.
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

// Transfer moves a lock from one owner to another, and returns true. The new owner then holds the
// lock for lease, with a hold count of 1 and the same fence, and the former owner does not hold the
// lock any more. If the new owner holds the lock already, because the command is repeated, the
// lease is not shortened. If neither owner holds the lock, Transfer returns false and changes
// nothing.
func Transfer(ctx context.Context, c rueidis.CoreClient, lock, from, to string, lease time.Duration,
) (bool, error) {
	rp := scripts["transfer.lua"].Run(ctx, c, []string{lock}, from, to, milliseconds(lease))
	is := rp.Boolean()
	return is, rp.Err
}

// token reads the fence of a fenced lock. If the text is not a number, the error has the given
// class. token adds advice to an error that concerns the key of the fence.
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
