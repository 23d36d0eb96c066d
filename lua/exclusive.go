package lua

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Exclusive is a lock that one owner has at a time, plain or fenced, for clients that hand it over
// to each other: a waiter is registered, and whoever releases the lock grants it the lock. Its
// commands need texts that are made once. It is safe for concurrent use.
type Exclusive struct {
	lock, channel, present string
	fenced                 bool
	acquires, waits        []string // keys of acquire, without and with a registration
	releases, handsOver    []string // keys of release and hand_over
	leases, registered     atomic.Pointer[leaseText]
}

// leaseText is the last lease that was written, of those that owners ask for or register with.
type leaseText struct {
	lease time.Duration
	text  string
}

// NewExclusive describes the lock called name.
func NewExclusive(name string, fenced bool) *Exclusive {
	e := &Exclusive{
		lock:    name,
		channel: Channel(name),
		present: presentChannel(name),
		fenced:  fenced,
	}
	waiters, token := waitersKey(name), tokenKey(name)
	e.releases, e.handsOver = []string{name}, []string{name, waiters}
	e.acquires, e.waits = []string{name}, []string{name, waiters}
	if fenced {
		e.handsOver = append(e.handsOver, token)
		e.acquires, e.waits = []string{name, token}, []string{name, token, waiters}
	}
	return e
}

// Channel is where the release of the lock is announced.
func (e *Exclusive) Channel() string { return e.channel }

// PairedChannels returns the channels on which a client listens beside the [Channel] of a lock when
// it may be registered: one that shows that it may, and its own, on which it hears of grants, see
// [ParseGrant]. Other channels have none.
func PairedChannels(channel, client string) []string {
	rest, ok := strings.CutPrefix(channel, "redisson_lock__channel:")
	if !ok || ofOneWaiter.MatchString(channel) {
		return nil
	}
	present := "holdfast_lock_present:" + rest
	return []string{present, present + ":" + client}
}

// ofOneWaiter matches the channel of one waiter of a fair lock. Nobody registers for a lock that is
// called like that.
var ofOneWaiter = regexp.MustCompile(
	`:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:\d+$`)

// AnnouncementChannel is where a client listens beside [Channel] that waits for the lock and is not
// registered, though it may register for others: releases are announced then.
func AnnouncementChannel(name string) string { return presentChannel(name) + ":announce" }

// Registration is what makes an owner one of the waiters. It is granted the lock for lease.
func (e *Exclusive) Registration(owner string, lease time.Duration) string {
	kind := " p"
	if e.fenced {
		kind = " f"
	}
	return owner + " " + written(&e.registered, lease) + kind
}

// written returns the lease as the wire writes it. It is nearly always the same as the last time.
func written(last *atomic.Pointer[leaseText], lease time.Duration) string {
	if known := last.Load(); known != nil && known.lease == lease {
		return known.text
	}
	text := milliseconds(lease)
	last.Store(&leaseText{lease, text})
	return text
}

// Ticket tells apart the registrations that an owner has one after the other; 0 is none.
type Ticket int64

// Acquire takes the lock for owner with a count of 1, or returns who holds it; nil means that the
// owner has it. On success its TTL is at least lease, and a fenced lock has the number of the
// acquisition: larger than that of any earlier one under the same name, and the same when a command
// that took the lock is retried. On failure the lock has not changed; if registration is not "" the
// owner is registered then, and its ticket is returned. It keeps an earlier registration, and loses
// it when it gets the lock.
func (e *Exclusive) Acquire(
	ctx context.Context,
	c rueidis.CoreClient,
	owner string,
	lease time.Duration,
	registration string,
) (fence int64, ticket Ticket, _ *Holder, _ error) {
	s, keys := acquire, e.acquires
	if e.fenced {
		s = fencedAcquire
	}
	args := [...]string{owner, written(&e.leases, lease), registration}
	used := args[:2]
	if registration != "" {
		keys, used = e.waits, args[:]
	}
	reply := s.run(ctx, c, keys, used)
	if err := reply.Error(); err != nil {
		if rueidis.IsRedisNil(err) && !e.fenced {
			return 0, 0, nil, nil
		}
		err = Classify(err)
		if e.fenced {
			err = miscounted(e.lock, err)
		}
		return 0, 0, nil, err
	}
	message, _ := reply.ToMessage()
	if e.fenced && !message.IsArray() {
		fence, err := fenceOf(e.lock, message)
		return fence, 0, nil, err
	}
	values, err := message.ToArray()
	if err != nil {
		return 0, 0, nil, Classify(err)
	}
	if registration == "" {
		holder, err := holderOf(values)
		return 0, 0, holder, err
	}
	if err := sized(values, 4); err != nil {
		return 0, 0, nil, err
	}
	number, err := decimal(values[3])
	if err != nil {
		return 0, 0, nil, err
	}
	holder, err := holderOf(values[:3])
	if err != nil {
		return 0, 0, nil, err
	}
	return 0, Ticket(number), holder, nil
}

// HandOver says who may have a lock next that is released as a whole. Without Others, Successor and
// Withdrawn it is announced.
type HandOver struct {
	// Sharded reports whether channels are.
	Sharded bool
	// Others lets waiters of other clients be granted the lock. It takes a server that counts the
	// listeners of a channel: not one of several that forward messages to each other.
	Others bool
	// Successor is the registration of the owner that is next in this process; "" if there is none.
	// If another waiter gets the lock, the successor is registered from then on.
	Successor string
	// SuccessorFirst reports whether Successor comes before all others.
	SuccessorFirst bool
	// Streak is that of the lock until now, as the [Grant] or the owner before had it.
	Streak Streak
	// Withdrawn is a registration that its owner does not want any more; "" if there is none.
	Withdrawn string
}

// Streak says how often a lock was handed over since it was free, so that it is free now and then.
// It goes from owner to owner with the lock.
type Streak struct {
	Count int
	Began int64 // when, in milliseconds of the server's clock; 0 if that was not noted
}

// To says who has a lock after its release.
type To int

const (
	// Nobody means that it is free, and that was announced; or that levels are left.
	Nobody To = iota
	// Successor is the next in this process.
	Successor
	// Other is the owner of a registration: of another client, or the successor by its own.
	Other
)

// Release leaves owner with the given hold count. With count 0 the owner loses the lock, whatever
// count it had, and the lock is handed over or its release is announced; h matters only then.
func (e *Exclusive) Release(
	ctx context.Context, c rueidis.CoreClient, owner string, count int, h HandOver,
) (Released, error) {
	verb := Announcement{Sharded: h.Sharded}.verb()
	if count > 0 || !h.Others && h.Successor == "" && h.Withdrawn == "" {
		args := []string{owner, strconv.Itoa(count), e.channel, verb}
		return released(release.run(ctx, c, e.releases, args))
	}
	args := [...]string{owner, e.channel, verb, "", "0", "0", h.Successor, "0", h.Withdrawn}
	used := args[:4]
	if h.Others {
		args[3] = e.present
	}
	if h.Streak.Count > 0 {
		used = args[:]
		args[4] = strconv.Itoa(h.Streak.Count)
		args[5] = strconv.FormatInt(h.Streak.Began, 10)
	}
	if h.Successor != "" || h.Withdrawn != "" {
		used = args[:]
	}
	if h.SuccessorFirst {
		args[7] = "1"
	}
	return released(handOver.run(ctx, c, e.handsOver, used))
}

// Grant is a message that tells a waiter that it has a lock.
type Grant struct {
	Lock   string
	Owner  string
	Ticket Ticket // of the registration that was used up
	Fence  int64  // the number of the acquisition, if the lock is fenced
	Streak Streak
}

// ParseGrant reads a message on a client's own channel; ok is false if it is not a grant.
func ParseGrant(message string) (g Grant, ok bool) {
	g.Owner, message, _ = strings.Cut(message, " ")
	var numbers [4]int64
	for i := range numbers {
		number, rest, found := strings.Cut(message, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil {
			return Grant{}, false
		}
		numbers[i], message = n, rest
	}
	g.Ticket, g.Fence, g.Lock = Ticket(numbers[0]), numbers[1], message
	g.Streak = Streak{Count: int(numbers[2]), Began: numbers[3]}
	return g, true
}
