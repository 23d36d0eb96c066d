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

// Exclusive is a lock that one owner has at a time, plain or fenced, for clients that pass it on to each other: who waits for
// it has a place, and is given the lock by whoever releases it. It has the texts that its commands need, made once. It is
// safe for concurrent use.
type Exclusive struct {
	lock, channel, present string
	fenced                 bool
	acquires, waits        []string // keys of the script that acquires, without and with a place
	announces, passes      []string // keys of the script that releases, without and with waiters
	leases, gifts          atomic.Pointer[leaseText]
}

// leaseText is the last lease that was written, of those that owners ask for, or with which they wait.
type leaseText struct {
	lease time.Duration
	text  string
}

// NewExclusive describes the lock called name.
func NewExclusive(name string, fenced bool) *Exclusive {
	e := &Exclusive{lock: name, channel: Channel(name), present: presentChannel(name), fenced: fenced}
	waiters, token := waitersKey(name), tokenKey(name)
	e.announces, e.passes = []string{name}, []string{name, waiters}
	e.acquires, e.waits = []string{name}, []string{name, waiters}
	if fenced {
		e.passes = append(e.passes, token)
		e.acquires, e.waits = []string{name, token}, []string{name, token, waiters}
	}
	return e
}

// Channel is where the release of the lock is announced.
func (e *Exclusive) Channel() string { return e.channel }

// Companions are the channels on which a client listens, beside the [Channel] of a lock, when it may have a place: one that
// shows that it may, and then its own, on which it hears that it was given the lock, see [ParseGift]. Other channels have
// none.
func Companions(channel, client string) []string {
	rest, ok := strings.CutPrefix(channel, "redisson_lock__channel:")
	if !ok || ofOneWaiter.MatchString(channel) {
		return nil
	}
	present := "holdfast_lock_present:" + rest
	return []string{present, present + ":" + client}
}

// ofOneWaiter is what the channel of a waiter of a fair lock ends with. A lock that is called like that has no places.
var ofOneWaiter = regexp.MustCompile(`:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:\d+$`)

// AnnouncementChannel is where somebody listens, beside Channel, who waits for the lock without a place, though its client may
// have places: for then releases are to be announced.
func AnnouncementChannel(name string) string { return presentChannel(name) + ":announce" }

// Place is how an owner stands among those who wait. It is given the lock for lease.
func (e *Exclusive) Place(owner string, lease time.Duration) string {
	kind := " p"
	if e.fenced {
		kind = " f"
	}
	return owner + " " + written(&e.gifts, lease) + kind
}

// written is the lease as the wire writes it. Nearly always it is the same as the last time.
func written(last *atomic.Pointer[leaseText], lease time.Duration) string {
	if known := last.Load(); known != nil && known.lease == lease {
		return known.text
	}
	text := milliseconds(lease)
	last.Store(&leaseText{lease, text})
	return text
}

// Ticket tells places apart that an owner has one after the other; 0 is none.
type Ticket int64

// Acquire is [Acquire] with a count of 1; a fenced lock answers with the number of the acquisition. If place is not "" the
// owner has it when it is refused, and its ticket is returned. It keeps a place that it had, and loses it with the lock.
func (e *Exclusive) Acquire(ctx context.Context, c rueidis.CoreClient, owner string, lease time.Duration, place string) (fence int64, ticket Ticket, _ *Holder, _ error) {
	s, keys := acquire, e.acquires
	if e.fenced {
		s = fencedAcquire
	}
	args := [...]string{owner, "1", written(&e.leases, lease), place}
	used := args[:3]
	if place != "" {
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
	if place == "" {
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

// Passing says to whom a lock may be given that is released.
type Passing struct {
	// Sharded tells that channels are.
	Sharded bool
	// Others tells that waiters of other clients may be given the lock. It takes a server that counts the listeners of a
	// channel: one that is not one of several which forward messages to each other.
	Others bool
	// Next is the place of the owner that is next in this process; "" if there is none. If another gets the lock it has that
	// place from then on.
	Next string
	// NextFirst tells that Next comes before all others.
	NextFirst bool
	// Turns are those of the lock until now, as the [Gift] or the one before in this process had them.
	Turns Turns
	// GivenUp is a place that its owner does not want any more; "" if there is none.
	GivenUp string
}

// Turns say how often a lock has been passed on since it was free, so that it is free now and then. They go from owner to owner
// with the lock.
type Turns struct {
	Count int
	Began int64 // when it was first passed on, in milliseconds of the server's clock; 0 if that was not noted
}

// To says who has a lock after its release.
type To int

const (
	// Nobody means that it is free, and that was announced, or that levels are left.
	Nobody To = iota
	// Next is the next in this process.
	Next
	// Other is the owner of a place: of another client, or the next in this process by its place.
	Other
)

// Release leaves owner with the given hold count. With count 0 the owner loses the lock, whatever count it had, and somebody
// else gets it or the release is announced.
func (e *Exclusive) Release(ctx context.Context, c rueidis.CoreClient, owner string, count int, p Passing) (Released, error) {
	verb := Announcement{Sharded: p.Sharded}.verb()
	args := [...]string{owner, strconv.Itoa(count), e.channel, Unlocked, verb, "", "0", "0", p.Next, "0", p.GivenUp}
	keys, used := e.passes, args[:6]
	switch {
	case p.Next != "" || p.GivenUp != "":
		used = args[:]
	case !p.Others:
		keys, used = e.announces, args[:5]
	case p.Turns.Count > 0:
		used = args[:8]
	}
	if p.Others {
		args[5] = e.present
	}
	if p.Turns.Count > 0 {
		args[6], args[7] = strconv.Itoa(p.Turns.Count), strconv.FormatInt(p.Turns.Began, 10)
	}
	if p.NextFirst {
		args[9] = "1"
	}
	return released(release.run(ctx, c, keys, used))
}

// Gift is a message that says that a waiter was given a lock.
type Gift struct {
	Lock   string
	Owner  string
	Ticket Ticket // of the place that was given up for it
	Fence  int64  // the number of the acquisition, if the lock is fenced
	Turns  Turns
}

// ParseGift reads a message on a client's own channel; ok is false if it is not a gift.
func ParseGift(message string) (g Gift, ok bool) {
	g.Owner, message, _ = strings.Cut(message, " ")
	var numbers [4]int64
	for i := range numbers {
		number, rest, found := strings.Cut(message, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil {
			return Gift{}, false
		}
		numbers[i], message = n, rest
	}
	g.Ticket, g.Fence, g.Lock = Ticket(numbers[0]), numbers[1], message
	g.Turns = Turns{Count: int(numbers[2]), Began: numbers[3]}
	return g, true
}
