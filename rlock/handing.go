package rlock

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"holdfast/lua"
)

// A lock is handed over when whoever releases it gives it to somebody who waits, with the same script: then it is never
// free in between, and the one who waited need not ask for it. There are two ways.
//
// Within a process the release names the head of the local queue as its heir, and the answer to it is the acquisition: one
// command for both.
//
// Between processes the head of each local queue has a place in Redis (see lua/common/waiters.lua), and the release gives
// the lock to the oldest of them: a message to its client is the acquisition, and costs that no command.
//
// # Why that is safe
//
// An owner's name is of one acquisition, and only ever given the lock by a command that made it the only field of the lock's
// hash. So at any time one owner has the lock in Redis. What remains is that an owner must not trust its lease for longer
// than Redis keeps it, though it did not ask for it just then:
//
//   - An heir learns of its lock from the answer to the release, and its lease began after that was sent.
//   - A place is given away once, and its ticket is never used again. A waiter believes a message only if its last question
//     was refused and answered with the same ticket. So the place was given away after that question was sent, and its
//     lease began after that.
//     That is so on one server: two masters, of which one does not know yet that it was replaced, may each give a lock, as they
//     may when they are asked.
//   - Whatever else comes (a ticket that is not known, because the answer did not come) is a reason to ask, and no lock.
//
// And no lock may remain with somebody who has left:
//
//   - A waiter that leaves and may have a place, or the lock, gives both up in the background. One that leaves while it is the
//     heir in a release that is under way is cleaned up after when the answer is here, since only then nothing repeats that.
//   - A message for somebody who is neither waiting nor holding, because the command that enlisted it was executed late, is
//     answered by giving the lock up.
//   - A client that is gone hears no message: the server says so within the script, and the next one is tried. One that is
//     connected but stopped has the lock for its lease, which in watchdog mode is a short one, until its first renewal.

// HandOver says how a lock gets from who releases it to those who wait for it. It concerns reentrant and fenced locks, and
// within a process the write side of a read-write lock.
type HandOver int

const (
	// HandOverToAll gives the lock to the next waiter of this process, for at most 16 times and 100 ms if others wait elsewhere,
	// or to the one that has waited longest in any process of this library. When others listen, such as clients of Redisson,
	// and now and then in any case (after 16 turns and 100 ms, or 4 and a second), it is announced to all instead, as by
	// Redisson. On a cluster it takes sharded channels.
	HandOverToAll HandOver = iota
	// HandOverLocal gives it to waiters of this process only.
	HandOverLocal
	// HandOverNone always announces it.
	HandOverNone
)

// A lock stays in a process for so many hand-overs and for so long, if others wait for it elsewhere.
const (
	longestRun     = 16
	longestRunTime = 100 * time.Millisecond
)

// run is how often and for how long a lock has stayed in this process.
type run struct {
	length int
	began  time.Time // zero: it has not
}

// open tells whether the lock may stay.
func (r run) open() bool {
	return r.length < longestRun && (r.began.IsZero() || time.Since(r.began) < longestRunTime)
}

// journey is how a lock got to its holder. It goes on with the lock and not with the line that waits for that, which may be
// empty for a moment.
type journey struct {
	turns lua.Streak // how often it was passed on since it was free, but for those of runs
	run   run        // here, the present one
}

// gift is a lock that a waiter was given.
type gift struct {
	since   time.Time // its lease began after that
	fence   int64
	journey journey
}

// handing is what may become of a waiter without its asking. Its fields are guarded by lines.mu.
type handing struct {
	heir    heir
	gifts   chan gift // has the lock that it was given, until it takes that
	offered bool      // it is the heir in a release that is under way
	asking  bool      // it asks for the lock itself
	given   bool      // it has the lock
	gone    bool      // it has left
	keeps   bool      // it has the lock for good: no answer that is late concerns it
	place   bool      // it may have a place in Redis
	ticket  lua.Ticket
	asked   time.Time   // when it was sent what was answered with the ticket
	early   gift        // came while it asked
	unread  []lua.Grant // came while its ticket was not known
}

// offer is a release, to an heir if there is one.
type offer struct {
	journey journey // until now
	spot    *spot   // nil if there is none
	first   bool
}

// offer picks the head of a line as an heir.
func (ls *lines) offer(to lineName, j journey) offer {
	nobody := offer{journey: j}
	if ls.slot(to).lines.Load() == 0 {
		return nobody
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	q := ls.byName[to]
	if q == nil {
		return nobody
	}
	s := q.waiting.Front().Value.(*spot)
	if s.offered || s.asking || s.given {
		return nobody
	}
	s.offered = true
	first := j.run.open()
	if q.places() && !first {
		ls.enlisted[s.heir.owner] = s // the release may give it a place, and somebody else the lock before the answer is here
	}
	return offer{journey: j, spot: s, first: first}
}

// heir is as the release is told.
func (o offer) heir() heir {
	h := heir{}
	if o.spot != nil {
		h = o.spot.heir
	}
	h.first, h.turns = o.first, o.journey.turns
	return h
}

// after is the journey of the lock when the heir has it, by a release that was sent at the given time. Who comes before those
// who wait elsewhere is not counted among the turns: runs have a bound of their own.
func (o offer) after(sent time.Time, r lua.Released) journey {
	j := o.journey
	if !o.first {
		j.turns.Count++
		j.turns.Began = cmp.Or(j.turns.Began, r.Began)
	}
	if !o.first || j.run.began.IsZero() {
		j.run = run{began: sent} // if it was not first, nobody waits elsewhere
	}
	j.run.length++
	return j
}

// settle notes what became of a release, which was sent at the given time. It returns true if the heir has left without the
// lock, and may have that or a place now.
func (o offer) settle(sent time.Time, r lua.Released, err error) (abandoned bool) {
	s := o.spot
	if s == nil {
		return false
	}
	ls := s.line.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s.offered = false
	doubt := err != nil && lua.ClassOf(err) == lua.Unknown
	inherits := err == nil && r.To == lua.Successor
	enlisted := err == nil && r.Ticket != 0
	if s.gone {
		return !s.keeps && (doubt || inherits || enlisted) // it may have looked by itself, and have the lock by the same release
	}
	s.place = s.place || doubt || inherits || enlisted
	switch {
	case inherits:
		s.give(gift{sent, r.Fence, o.after(sent, r)})
	case enlisted && sent.Before(s.asked):
		s.tell(true) // it has asked since, and may have another place by now
	case enlisted:
		s.enlist(r.Ticket, sent)
	case doubt, !r.Held, r.Refusal != "": // an earlier release may have given it the lock, or nobody was told of this one
		s.tell(true)
	}
	s.read()
	return false
}

// give lets the waiter have the lock. lines.mu must be held.
func (s *spot) give(g gift) {
	switch {
	case s.given:
	case s.asking:
		s.early = g
	default:
		s.given = true
		s.gifts <- g
	}
}

// enlist notes that the waiter has a place. lines.mu must be held.
func (s *spot) enlist(t lua.Ticket, asked time.Time) {
	s.line.lines.enlisted[s.heir.owner] = s
	if s.asking {
		return // the answer has the ticket too
	}
	s.ticket, s.asked = t, asked
	s.read()
}

// read looks at the messages that came while it was not known whether they are believed. lines.mu must be held.
func (s *spot) read() {
	if s.asking || s.offered {
		return
	}
	unread := s.unread
	s.unread = nil
	for _, g := range unread {
		switch s.ticket {
		case g.Ticket:
			s.give(gift{s.asked, g.Fence, journey{turns: g.Streak}})
		case 0:
			s.tell(true) // which of them is right is for Redis to say
		default:
			if g.Ticket > s.ticket {
				s.tell(true) // of a place that it did not know of
			}
		}
	}
}

// gift delivers a message. It returns false if nobody here waits for that.
func (ls *lines) gift(g lua.Grant) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s := ls.enlisted[g.Owner]
	if s == nil || s.line.call.line.lock != g.Lock {
		return false
	}
	s.unread = append(s.unread, g)
	s.read()
	return true
}

// places tells whether waiters may have places in Redis at present.
func (q *line) places() bool { return q.call.places && q.lines.wire.givesAway() }

// asks notes that the waiter is about to ask, and returns whether it may be given a place.
func (s *spot) asks() (enlists bool) {
	q := s.line
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	s.asking, s.ticket = true, 0
	if s.given { // too little was left of it, or something else woke the waiter: the answer will tell
		s.given, s.place = false, true
		select {
		case <-s.gifts:
		default:
		}
	}
	// Who has a place asks with it in any case: it is given up with the same script when the lock is free.
	if q.places() && (s.place || q.sub != nil && q.sub.Accompanied()) {
		s.place = true
		q.lines.enlisted[s.heir.owner] = s
		return true
	}
	return false
}

// hears notes the answer: the ticket if there is one. It returns true if the waiter was given the lock meanwhile.
func (s *spot) hears(t lua.Ticket, asked time.Time) (g gift, ok bool) {
	ls := s.line.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s.asking = false
	early := s.early
	s.early = gift{}
	if t != 0 {
		s.enlist(t, asked)
	}
	if !early.since.IsZero() {
		s.give(early)
	}
	s.read()
	select {
	case g = <-s.gifts:
		return g, true
	default:
		return gift{}, false
	}
}

// keep notes that the waiter has the lock and is about to leave with it.
func (s *spot) keep() {
	ls := s.line.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s.keeps = true
}

// depart notes that the waiter leaves, and returns whether it may have something in Redis to be given up. lines.mu must be held.
func (s *spot) depart() (remains bool) {
	s.gone = true
	delete(s.line.lines.enlisted, s.heir.owner)
	return !s.keeps && (s.place || s.given)
}

// leave notes that an owner is about to release its lock, of those that may hear only now that they were given it.
func (ls *lines) leave(owner string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.leaving == nil {
		ls.leaving = make(map[string]struct{})
	}
	ls.leaving[owner] = struct{}{}
}

// left ends leave, when the release has an answer or nobody waits for one.
func (ls *lines) left(owner string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.leaving, owner)
}

// leaves tells whether an owner is between leave and left.
func (ls *lines) leaves(owner string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, leaves := ls.leaving[owner]
	return leaves
}

// longestGift is for how long a lock is released that a waiter of this client was given who is not known any more. Its lease is
// not either.
const longestGift = time.Hour

// given reads a message that says that a waiter of this client was given a lock. Nobody has reason to say that of a waiter of
// another client, or on the channel of another lock.
func (c *Client) given(channel, message string) {
	g, ok := lua.ParseGrant(message)
	if !ok || !strings.HasPrefix(g.Owner, c.id+":") || !slices.Contains(lua.PairedChannels(lua.Channel(g.Lock), c.id), channel) {
		return
	}
	if c.lines.gift(g) {
		return
	}
	for _, h := range c.seats.holdings() {
		if h.owner == g.Owner {
			return // it has asked, and was told before
		}
	}
	if c.lines.leaves(g.Owner) { // after the holdings: a hold has left them only after this was noted
		return
	}
	lock := c.NewLock(g.Lock)
	if g.Fence != 0 {
		lock = c.NewFencedLock(g.Lock) // whose release can give the lock to the next one that wants a number
	}
	c.janitor.add(leftover{lock: lock, bid: bid{owner: g.Owner, turns: g.Streak}, until: time.Now().Add(longestGift)})
}
