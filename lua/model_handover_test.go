package lua_test

import (
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"holdfast/lua"
)

// handOverModel is the model of a lock for one owner at a time that is handed over to those who
// wait for it.
type handOverModel struct {
	*exclusiveModel
	lock *lua.Exclusive

	waiting []registration // first come first
	keep    *int64         // when all of them are forgotten; nil when there is none

	listening map[string]bool     // owners of ours whose clients listen, others who do on the channel of the lock, unregistered
	last      lua.Ticket          // the last one given
	grants    map[lua.Ticket]bool // that were seen
}

// registration is an owner who waits.
type registration struct {
	owner  string
	ticket lua.Ticket
}

// unregistered is one who waits and has no registration, of a client that may have registrations.
const unregistered = somebody

func newHandOver(t *rapid.T, p *program, fenced bool) *handOverModel {
	m := &handOverModel{
		exclusiveModel: newExclusive(p, fenced),
		lock:           lua.NewExclusive(lock, fenced),
		listening:      map[string]bool{},
		grants:         map[lua.Ticket]bool{},
	}
	p.model = m
	for _, who := range []string{anna, bert, cleo, java, unregistered} {
		m.hear(t, who, who == anna || who == bert) // whatever the program before left
	}
	return m
}

// waiterLeaseOf is the lease of an owner that waits.
func waiterLeaseOf(owner string) time.Duration {
	return map[string]time.Duration{anna: 2 * time.Second, bert: 30 * time.Second, cleo: 7 * time.Second}[owner]
}

// registrationOf is the registration of an owner as the package writes it.
func (m *handOverModel) registrationOf(owner string) string {
	return m.lock.Registration(owner, waiterLeaseOf(owner))
}

func (m *handOverModel) want() keyspace {
	k := m.exclusiveModel.want()
	if len(m.waiting) > 0 {
		tickets := map[string]string{}
		for _, w := range m.waiting {
			tickets[m.registrationOf(w.owner)] = strconv.FormatInt(int64(w.ticket), 10)
		}
		k[waiters] = entry{hash: tickets, ends: m.keep}
	}
	return k
}

func (m *handOverModel) expire(now int64) {
	m.exclusiveModel.expire(now)
	if m.keep != nil && *m.keep <= now {
		m.waiting, m.keep = nil, nil
	}
}

// ticket is that of an owner; 0 if it has none.
func (m *handOverModel) ticket(owner string) lua.Ticket {
	for _, w := range m.waiting {
		if w.owner == owner {
			return w.ticket
		}
	}
	return 0
}

// register notes that an owner has a registration, with the ticket that it was told. It returns
// what that should be, as far as it is known: its own if it waited already, and else one that is
// larger than all before.
func (m *handOverModel) register(owner string, told lua.Ticket) lua.Ticket {
	m.keep = instant(m.now + 3*lua.MaxNap.Milliseconds())
	if had := m.ticket(owner); had != 0 {
		return had
	}
	if told <= m.last {
		return m.last + 1
	}
	m.last = told
	m.waiting = append(m.waiting, registration{owner, told})
	return told
}

// withdraw takes an owner's registration from it.
func (m *handOverModel) withdraw(owner string) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w registration) bool { return w.owner == owner })
	if len(m.waiting) == 0 {
		m.keep = nil
	}
}

// oldest is the owner among those who wait and whose client listens that has waited longest, and
// does not leave the lock just then; "" if there is none.
func (m *handOverModel) oldest(leaving string) string {
	for _, w := range m.waiting {
		if w.owner != leaving && m.listening[w.owner] {
			return w.owner
		}
	}
	return ""
}

// grant gives somebody who waited a lock that is free.
func (m *handOverModel) grant(owner string) {
	m.withdraw(owner)
	m.hold(owner, 1, waiterLeaseOf(owner))
	m.number()
}

// number numbers an acquisition.
func (m *handOverModel) number() {
	if m.fenced {
		m.token++
		m.given = m.token
	}
}

// grantOldest gives a lock that is free to the one of those who wait that listens and has waited
// longest, and tells it. Those before it are told as well, and have lost their registrations; the
// one that leaves has lost its own. It returns "" if nobody listens.
func (m *handOverModel) grantOldest(leaving string, streak lua.Streak) string {
	successor := m.oldest(leaving)
	for len(m.waiting) > 0 {
		w := m.waiting[0]
		m.withdraw(w.owner)
		if w.owner != successor { // it leaves, or nobody listens for it
			continue
		}
		m.number()
		fence := int64(0)
		if m.fenced {
			fence = m.token
		}
		m.told = append(m.told, message{"PUBLISH", present + ":" + clientOf(w.owner),
			w.owner + " " + strconv.FormatInt(
				int64(w.ticket),
				10,
			) + " " + strconv.FormatInt(
				fence,
				10,
			) + " " +
				strconv.Itoa(
					streak.Count+1,
				) + " " + strconv.FormatInt(
				streak.Began,
				10,
			) + " " + lock})
		m.hold(successor, 1, waiterLeaseOf(successor))
		m.tellOf(waiterLeaseOf(successor))
		return successor
	}
	return ""
}

// release leaves the lock, which is held, and returns what is to be told of it. A ticket in that,
// and a time that was not noted before, are what was told.
func (m *handOverModel) release(p lua.HandOver, next string, told lua.Released) lua.Released {
	leaving := m.owner
	m.free()
	toNext := func() lua.Released {
		m.grant(next)
		m.tellOf(waiterLeaseOf(next))
		return lua.Released{Held: true, To: lua.Successor, Fence: m.fence()}
	}
	if next != "" && p.SuccessorFirst {
		return toNext()
	}
	if p.Others && !freeForOnce(p.Streak) {
		if m.listening[java] || m.listening[unregistered] {
			m.lookThrough(leaving)
		} else {
			switch successor := m.grantOldest(leaving, p.Streak); {
			case successor != "" && (next == "" || successor == next):
				return lua.Released{Held: true, To: lua.Other}
			case successor != "":
				return lua.Released{Held: true, To: lua.Other, Ticket: m.register(next, told.Ticket)}
			case next != "":
				r := toNext()
				if r.Began = p.Streak.Began; r.Began == 0 {
					r.Began = max(told.Began, 1)
				}
				return r
			}
		}
	}
	m.announce()
	return lua.Released{Held: true}
}

// tellOf tells all who wait of a short lease that began without their asking.
func (m *handOverModel) tellOf(lease time.Duration) {
	if lease < lua.MaxNap {
		m.told = append(m.told, message{"PUBLISH", lockChannel, soon})
	}
}

// lookThrough is what a release does that finds out only with a registration in its hands that it
// has to be announced.
func (m *handOverModel) lookThrough(leaving string) {
	if len(m.waiting) > 0 && m.waiting[0].owner == leaving {
		m.withdraw(leaving)
	}
	if len(m.waiting) == 1 {
		m.keep = instant(m.now + 3*lua.MaxNap.Milliseconds())
	}
}

// ever is a time that does not come.
const ever = 1 << 52

// freeForOnce tells whether a lock that was handed over so often should be free now. Either that
// began long ago, or the clock was set back since; what is between is for the unit tests.
func freeForOnce(before lua.Streak) bool { return before.Began > 0 && (before.Count+1)%4 == 0 }

// fence is the number of the present hold; 0 if the lock is not fenced.
func (m *handOverModel) fence() int64 {
	if !m.fenced {
		return 0
	}
	return m.given
}
